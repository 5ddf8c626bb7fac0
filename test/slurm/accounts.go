package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// keepAccounts starts a database and a slurmdbd that know the cluster, and an account
// "work" in which this user may run jobs.
func (c *Cluster) keepAccounts(ctx context.Context) error {
	u, err := user.Current()
	if err != nil {
		return err
	}
	_, err = c.startDatabase(ctx, u.Username)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	conf := fmt.Sprintf("AuthType=auth/none\nDbdHost=%s\nDbdAddr=127.0.0.1\nDbdPort=%d\nSlurmUser=%s\nLogFile=%s/slurmdbd.log\nPidFile=%s/slurmdbd.pid\n"+
		"CommunicationParameters=NoInAddrAny\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort=%d\nStorageUser=slurm\nStoragePass=slurm\nStorageLoc=accounts\n",
		host, c.ports[1], u.Username, c.Folder, c.Folder, c.ports[2])
	if err := os.WriteFile(filepath.Join(c.Folder, "slurmdbd.conf"), []byte(conf), 0o600); err != nil {
		return err
	}
	if err := c.launch("slurmdbd", "-D"); err != nil {
		return err
	}
	if err := c.until(ctx, func() error { return c.Command(ctx, "sacctmgr", "-n", "list", "cluster").Run() }); err != nil {
		return err
	}
	for _, args := range [][]string{{"cluster", c.Name}, {"account", "work"}, {"user", u.Username, "account=work"}} {
		if out, err := c.Command(ctx, "sacctmgr", append([]string{"-i", "add"}, args...)...).CombinedOutput(); err != nil && !strings.Contains(string(out), "Nothing new") {
			return fmt.Errorf("sacctmgr add %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// startDatabase starts a MariaDB of the cluster's own and returns its socket.
func (c *Cluster) startDatabase(ctx context.Context, username string) (socket string, err error) {
	data := filepath.Join(c.Folder, "db")
	socket = filepath.Join(c.Folder, "db.sock")
	install, err := lookUp("mariadb-install-db")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user="+username, "--datadir="+data).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a database: %w: %s", err, out)
	}
	setup := filepath.Join(c.Folder, "db.sql")
	orders := "CREATE DATABASE accounts;\nCREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';\nCREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm';\n" +
		"GRANT ALL ON accounts.* TO 'slurm'@'127.0.0.1';\nGRANT ALL ON accounts.* TO 'slurm'@'localhost';\n"
	if err := os.WriteFile(setup, []byte(orders), 0o600); err != nil {
		return "", err
	}
	return socket, c.launch("mariadbd", "--no-defaults", "--user="+username, "--datadir="+data, "--socket="+socket, "--pid-file="+filepath.Join(c.Folder, "db.pid"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", c.ports[2]), "--init-file="+setup, "--innodb-buffer-pool-size=32M", "--innodb-lock-wait-timeout=900")
}
