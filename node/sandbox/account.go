package sandbox

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Account is whom a task without walls runs as, if not as this process's own account. Only
// root starts such tasks.
type Account struct {
	User   uint32
	Group  uint32
	Groups []uint32 `json:",omitempty"` // besides Group
}

func (a *Account) credential() *syscall.Credential {
	return &syscall.Credential{Uid: a.User, Gid: a.Group, Groups: a.Groups}
}

// Do runs f as the account, on a thread of its own: what f may see of files is what the
// account may. Whoever else runs in this process keeps its own.
func (a *Account) Do(f func()) (err error) {
	onOwnThread(func() { // which ends
		if err = a.take(); err == nil {
			f()
		}
	})
	return err
}

// take has the calling thread be the account's, for ever. The calls of package syscall would
// change every thread of the process.
func (a *Account) take() error {
	groups := append([]uint32{a.Group}, a.Groups...)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0); errno != 0 {
		return fmt.Errorf("groups of account %d: %w", a.User, errno)
	}
	gid, uid := uintptr(a.Group), uintptr(a.User)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("group %d: %w", a.Group, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("account %d: %w", a.User, errno)
	}
	return nil
}

// Bare reports whether the plan is nothing but an account.
func (p *Plan) Bare() bool {
	return p.Account != nil && !p.Walled() && p.Limits == (Limits{})
}
