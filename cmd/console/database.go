package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"countersign/migrations"
	"countersign/store"
	"countersign/store/embedded"
)

// place says where the database is: a server of one's own, or one that we run
// in a folder.
type place struct {
	url    string // DATABASE_URL; "" for a server that we run
	folder string // --data
}

// databaseFlags declares what every command with a database takes.
func (c *call) databaseFlags(standard string) func() place {
	c.environment("DATABASE_URL", "PostgreSQL to use, as postgres://user:password@host/database?sslmode=verify-full.\n    \tUnset: a PostgreSQL of our own in the data folder.")
	data := c.text("data", "COUNTERSIGN_DATA", standard, "`FOLDER` of our own PostgreSQL and secret, without DATABASE_URL")
	return func() place {
		if u := c.env("DATABASE_URL"); u != "" {
			return place{url: u}
		}
		return place{folder: *data}
	}
}

// describe tells where the database is, without secrets.
func (p place) describe() string {
	if p.url == "" {
		return "our own PostgreSQL in " + p.folder
	}
	return hideSecrets(p.url)
}

// check refuses what is no usable URL, without repeating it: it may hold a
// password.
func (p place) check() error {
	if p.url == "" {
		return nil
	}
	u, err := url.Parse(p.url)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("DATABASE_URL is no URL such as postgres://user:password@host/database?sslmode=verify-full; " +
			"in a password, write every character that is no letter or digit as %XX: a space is %20, a percent sign %25")
	}
	if !u.Query().Has("sslmode") {
		return errors.New("DATABASE_URL does not say sslmode: add ?sslmode=verify-full, or sslmode=disable on a unix socket")
	}
	return nil
}

func hideSecrets(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "DATABASE_URL, which is no URL"
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "pass") {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// database is an open database.
type database struct {
	*store.DB
	owner   string            // URL of the schema's owner
	folder  string            // where we run it; "" for a server of one's own
	cluster *embedded.Cluster // nil when another process runs it
}

// schemaUse says what to do about the schema.
type schemaUse int

const (
	schemaOurs    schemaUse = iota // migrate our own PostgreSQL, check any other
	schemaMigrate                  // migrate whatever it is
)

// opening says how to open a database.
type opening struct {
	schema schemaUse
	attach bool // a server that another process of ours runs will do
	log    *slog.Logger
}

// open opens the database. It runs our own PostgreSQL where the place says so.
func (p place) open(ctx context.Context, o opening) (*database, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	d := &database{owner: p.url, folder: p.folder}
	migrating := o.schema == schemaMigrate
	if p.url == "" {
		if err := d.start(ctx, o); err != nil {
			return nil, err
		}
		migrating = migrating || d.cluster != nil
	}
	if err := d.connect(ctx, migrating); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// start runs our own PostgreSQL, or finds the one that runs already.
func (d *database) start(ctx context.Context, o opening) error {
	if err := makeFolder(d.folder); err != nil {
		return err
	}
	note := filepath.Join(d.folder, runningFile)
	cluster, err := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(d.folder, clusterDir), Log: o.log})
	if errors.Is(err, embedded.ErrInUse) && o.attach {
		running, readErr := os.ReadFile(note)
		if readErr != nil {
			return err
		}
		d.owner = strings.TrimSpace(string(running))
		return nil
	}
	if err != nil {
		return err
	}
	d.cluster, d.owner = cluster, cluster.DSN(embedded.Database)
	if err := writePrivately(note, []byte(d.owner+"\n")); err != nil {
		return errors.Join(err, cluster.Stop())
	}
	return nil
}

func (d *database) connect(ctx context.Context, migrating bool) error {
	if migrating {
		if err := bringUp(ctx, d.owner); err != nil {
			return err
		}
	}
	db, err := store.Open(ctx, d.owner, store.Options{})
	if err != nil {
		// The role is what the first migration makes.
		if have, want, readErr := schemaVersion(ctx, d.owner); readErr == nil && have < want {
			return oldSchema(have, want)
		}
		return err
	}
	d.DB = db
	have, want, err := migrations.Version(ctx, db.Pool())
	if err != nil {
		return err
	}
	if have < want {
		return oldSchema(have, want)
	}
	return nil
}

func oldSchema(have, want int64) error {
	return fmt.Errorf("the database has schema %d, this program needs %d: run \"console migrate\" with the owner's DATABASE_URL", have, want)
}

// close ends the connections, and the server when it is ours.
func (d *database) close() error {
	var errs []error
	if d.DB != nil {
		errs = append(errs, d.DB.Close())
	}
	if d.cluster != nil {
		if err := os.Remove(filepath.Join(d.folder, runningFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, d.cluster.Stop())
	}
	return errors.Join(errs...)
}

// gone is closed when the server that we run has ended; nil when it is not ours.
func (d *database) gone() <-chan struct{} {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Done()
}

// bringUp migrates a database as its owner.
func bringUp(ctx context.Context, owner string) (err error) {
	db, err := sql.Open("postgres", owner)
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return migrations.Up(ctx, db)
}

// schemaVersion reads the schema's version as the owner.
func schemaVersion(ctx context.Context, owner string) (have, want int64, err error) {
	db, err := sql.Open("postgres", owner)
	if err != nil {
		return 0, 0, fmt.Errorf("opening the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return migrations.Version(ctx, db)
}
