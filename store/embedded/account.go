//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's account that the server runs as. The zero
// account is this process's own.
type account struct {
	name       string
	credential *syscall.Credential
}

// other reports whether the server runs as somebody else than this process.
func (a account) other() bool { return a.credential != nil }

func (a account) describe() string {
	if !a.other() {
		return "own"
	}
	return a.name
}

// accountFor chooses the account: our own, unless we are root. Then whoever
// owns the data, else postgres, else nobody.
func accountFor(data string) (account, error) {
	owner, err := ownerOf(data)
	if err != nil {
		return account{}, err
	}
	if os.Geteuid() != 0 {
		if owner != nil && int(owner.Uid) != os.Geteuid() {
			return account{}, fmt.Errorf("the database in %s belongs to another account (uid %d); start as that one, or %s", data, owner.Uid, wayOut)
		}
		return account{}, nil
	}
	if owner != nil && owner.Uid != 0 {
		name := "uid " + strconv.Itoa(int(owner.Uid))
		if u, err := user.LookupId(strconv.Itoa(int(owner.Uid))); err == nil {
			name = u.Username
		}
		return account{name, owner}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU == nil && errG == nil && uid != 0 {
			return account{name, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is no account postgres or nobody to run it; start as another account, or set DATABASE_URL")
}

// ownerOf returns who owns path, or nil when it does not exist.
func ownerOf(path string) (*syscall.Credential, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the data folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("looking at the data folder: no owner known of %s", path)
	}
	return &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}, nil
}

// own gives path and all that is in it to the account. It does nothing when the
// account is our own or has it already.
func (a account) own(path string) error {
	if !a.other() {
		return nil
	}
	owner, err := ownerOf(path)
	if err != nil || (owner != nil && owner.Uid == a.credential.Uid) {
		return err
	}
	err = filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(a.credential.Uid), int(a.credential.Gid))
	})
	if err != nil {
		return fmt.Errorf("giving %s to %s: %w", path, a.name, err)
	}
	return nil
}
