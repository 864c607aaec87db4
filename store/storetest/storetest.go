//go:build unix

// Package storetest gives every test a database of its own, migrated, on a real
// PostgreSQL.
//
// A package's TestMain calls Run, which starts a private cluster for the test
// process, or uses the one that COUNTERSIGN_TEST_CLUSTER names: the URL of a
// superuser's database. "make check" starts one for all packages.
package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/migrations"
	"countersign/store/embedded"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// clusterEnv names the cluster to use: the URL of a superuser's database.
const clusterEnv = "COUNTERSIGN_TEST_CLUSTER"

// appRole is the option that every connection of the application carries.
const appRole = "-c role=countersign_app"

// patience bounds what one helper may take.
const patience = 2 * time.Minute

// Run is the body of a TestMain: os.Exit(storetest.Run(m)). It provides a
// cluster to New, runs the tests and returns their exit code.
func Run(m *testing.M) int {
	if os.Getenv(clusterEnv) != "" {
		return m.Run()
	}
	stop, err := StartCluster(false)
	if err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return max(code, 1)
	}
	return code
}

// StartCluster starts a cluster and names it in the environment, for New here
// and in child processes. It is fast; a durable one writes to disk as a real
// server does. stop removes it with everything in it.
func StartCluster(durable bool) (stop func() error, err error) {
	dir, err := os.MkdirTemp("/tmp", "countersign-test-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	settings := Settings()
	if durable {
		settings = map[string]string{"max_connections": settings["max_connections"]}
	}
	cluster, err := embedded.Start(ctx, embedded.Options{Dir: dir, Settings: settings})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster: %w", err), os.RemoveAll(dir))
	}
	if err := os.Setenv(clusterEnv, cluster.DSN("postgres")); err != nil {
		return nil, errors.Join(err, cluster.Stop(), os.RemoveAll(dir))
	}
	// Nothing in it is worth an orderly end.
	return func() error { return errors.Join(cluster.Kill(), os.RemoveAll(dir)) }, nil
}

// Settings are the server settings of a test cluster: quick, not durable.
func Settings() map[string]string {
	return map[string]string{
		"fsync":              "off",
		"synchronous_commit": "off",
		"full_page_writes":   "off",
		"autovacuum":         "off",
		"max_connections":    "500",
	}
}

// New makes a migrated database for t alone and returns its URL, as the
// application's role. The database is dropped when t ends, whoever is still
// connected.
func New(t testing.TB) string {
	t.Helper()
	cluster := os.Getenv(clusterEnv)
	if cluster == "" {
		t.Fatal("no cluster: let TestMain call storetest.Run")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	admin, err := sql.Open("postgres", cluster)
	if err != nil {
		t.Fatalf("opening the test cluster: %v", err)
	}
	t.Cleanup(func() { admin.Close() })
	template, err := template(ctx, admin, cluster)
	if err != nil {
		t.Fatalf("making the template database: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := copyDatabase(ctx, admin, name, template); err != nil {
		t.Fatalf("making a database: %v", err)
	}
	t.Cleanup(func() { drop(t, admin, name) })
	dsn, err := edit(cluster, func(u *url.URL, q url.Values) {
		u.Path = "/" + name
		q.Set("options", appRole)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// Owner returns the URL of the same database as its owner, who may change
// everything: for tests that tamper, and for migrations.
func Owner(dsn string) string {
	return edited(dsn, func(_ *url.URL, q url.Values) {
		q.Set("options", strings.TrimSpace(strings.Replace(q.Get("options"), appRole, "", 1)))
		if q.Get("options") == "" {
			q.Del("options")
		}
	})
}

// Skewed returns the URL of the same database, in the same role, as it will be
// d later: app_now() is ahead of the clock by d, to the microsecond.
func Skewed(dsn string, d time.Duration) string {
	return edited(dsn, func(_ *url.URL, q url.Values) {
		skew := fmt.Sprintf("-c countersign.clock_skew=%dus", d.Microseconds())
		q.Set("options", strings.TrimSpace(q.Get("options")+" "+skew))
	})
}

// edited is edit for URLs that this package has made.
func edited(dsn string, change func(*url.URL, url.Values)) string {
	changed, err := edit(dsn, change)
	if err != nil {
		return dsn // it is no URL; whoever connects with it is told why
	}
	return changed
}

func edit(dsn string, change func(*url.URL, url.Values)) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL: %w", clusterEnv, err)
	}
	q := u.Query()
	change(u, q)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String(), nil
}

// template returns the name of a migrated database to copy, making it if this
// cluster has none for the present migrations.
func template(ctx context.Context, admin *sql.DB, cluster string) (string, error) {
	sum, err := fingerprint(migrations.Files())
	if err != nil {
		return "", err
	}
	name := "countersign_template_" + sum
	conn, err := admin.Conn(ctx)
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	if there, err := exists(ctx, conn, name); there || err != nil {
		return name, err
	}
	// Other test processes may want it at the same time.
	const key = 4206069
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
		return "", fmt.Errorf("locking: %w", err)
	}
	// The lock also ends with the connection, whatever this answers.
	defer conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, key)
	if there, err := exists(ctx, conn, name); there || err != nil {
		return name, err
	}
	return name, build(ctx, conn, cluster, name)
}

func exists(ctx context.Context, conn *sql.Conn, database string) (there bool, err error) {
	err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("looking for the template: %w", err)
	}
	return there, nil
}

// build migrates a new database under another name first: the template's name
// only ever belongs to a complete one.
func build(ctx context.Context, conn *sql.Conn, cluster, name string) error {
	draft := name + "_draft"
	if _, err := conn.ExecContext(ctx, `DROP DATABASE IF EXISTS `+pq.QuoteIdentifier(draft)+` WITH (FORCE)`); err != nil {
		return fmt.Errorf("dropping an unfinished template: %w", err)
	}
	if _, err := conn.ExecContext(ctx, `CREATE DATABASE `+pq.QuoteIdentifier(draft)+` TEMPLATE template0`); err != nil {
		return fmt.Errorf("making the template: %w", err)
	}
	dsn, err := edit(cluster, func(u *url.URL, _ url.Values) { u.Path = "/" + draft })
	if err != nil {
		return err
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("opening the template: %w", err)
	}
	if err := errors.Join(migrations.Up(ctx, db), db.Close()); err != nil {
		return err
	}
	return inUse(ctx, func() error {
		_, err := conn.ExecContext(ctx, `ALTER DATABASE `+pq.QuoteIdentifier(draft)+` RENAME TO `+pq.QuoteIdentifier(name))
		return err
	})
}

func copyDatabase(ctx context.Context, admin *sql.DB, name, template string) error {
	return inUse(ctx, func() error {
		_, err := admin.ExecContext(ctx, `CREATE DATABASE `+pq.QuoteIdentifier(name)+` TEMPLATE `+pq.QuoteIdentifier(template))
		return err
	})
}

// inUse repeats a command while the template still has a connection: one that
// was closed is known to the server for a moment longer.
func inUse(ctx context.Context, command func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := command()
		if pq.As(err, pqerror.ObjectInUse) == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func drop(t testing.TB, admin *sql.DB, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := admin.ExecContext(ctx, `DROP DATABASE IF EXISTS `+pq.QuoteIdentifier(name)+` WITH (FORCE)`); err != nil {
		t.Errorf("dropping the database: %v", err)
	}
}

// fingerprint tells one set of migrations from another.
func fingerprint(files fs.FS) (string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("listing the migrations: %w", err)
	}
	hash := sha256.New()
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("reading migration %s: %w", name, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
