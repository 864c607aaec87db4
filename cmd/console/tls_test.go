package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate of its own for this machine.
func certificate(t *testing.T, dir string, serial int64) (certFile, keyFile string, parsed *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, parsed
}

func TestServeTLS(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = goodSecret()
	cert, key, parsed := certificate(t, t.TempDir(), 1)
	printed, _ := servedAt(t, env, regexp.MustCompile(`public-url +(https://\S+)`), "--tls-cert", cert, "--tls-key", key)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	resp, err := client.Get(printed + "/login")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("answers %s over %s, Strict-Transport-Security %q", resp.Status, resp.Proto, resp.Header.Get("Strict-Transport-Security"))
	}
	if errs := fails(t, env, "", "serve", "--addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", cert); !strings.Contains(errs, "TLS certificate") {
		t.Errorf("with a wrong key it says %q", errs)
	}
}

func TestRenewedCertificateIsRead(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certificate(t, dir, 1)
	var said output
	pair := &keyPair{certFile: cert, keyFile: key, log: slog.New(slog.NewTextHandler(&said, nil))}
	serial := func() int64 {
		t.Helper()
		pair.read = time.Time{} // it is a minute later
		got, err := pair.current(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Fatalf("serial number %d", got)
	}
	certificate(t, dir, 2)
	if got := serial(); got != 2 {
		t.Errorf("after renewing, serial number %d", got)
	}
	if said.String() != "" {
		t.Errorf("of certificates that can be read it says %s", said.String())
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 {
		t.Errorf("while being replaced, serial number %d", got)
	}
	if text := said.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "certificate cannot be read") || !strings.Contains(text, "ends=") {
		t.Errorf("of one that cannot be read it says %q", text)
	}
}
