package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// hurried accepts connections on which a second is five milliseconds.
type hurried struct{ net.Listener }

func (h hurried) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	return hurriedConn{conn}, err
}

type hurriedConn struct{ net.Conn }

func (c hurriedConn) SetReadDeadline(end time.Time) error {
	if !end.IsZero() {
		end = time.Now().Add(time.Until(end) / 200)
	}
	return c.Conn.SetReadDeadline(end)
}

// A body that never comes ends the request, whichever server it is sent to and
// whether it is read there or not.
func TestABodyThatNeverComesHoldsNothing(t *testing.T) {
	reads := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	for name, handler := range map[string]http.Handler{"read": reads, "not read": http.NotFoundHandler()} {
		ln, err := listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := startHTTP(hurried{ln}, handler, nil, slog.New(slog.DiscardHandler), nil)
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is still held", name)
		}
		if err := server.stop(); err != nil {
			t.Error(err)
		}
	}
}
