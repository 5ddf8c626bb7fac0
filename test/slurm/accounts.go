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
	if err := c.launch("", "slurmdbd", "-D"); err != nil {
		return err
	}
	if err := c.until(ctx, func() error { return c.Command(ctx, "sacctmgr", "-n", "list", "cluster").Run() }); err != nil {
		return err
	}
	return c.enterAccounts(ctx)
}

// enterAccounts has the slurmdbd know the cluster, and this user in it.
func (c *Cluster) enterAccounts(ctx context.Context) error {
	u, err := user.Current()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"cluster", c.Name}, {"account", "work", "cluster=" + c.Name}, {"user", u.Username, "account=work", "cluster=" + c.Name}} {
		if err := c.manage(ctx, append([]string{"add"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// manage has slurmdbd do something.
func (c *Cluster) manage(ctx context.Context, args ...string) error {
	out, err := c.Command(ctx, "sacctmgr", append([]string{"-i"}, args...)...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "Nothing new") {
		return fmt.Errorf("sacctmgr %v: %w: %s", args, err, out)
	}
	return nil
}

// Federate makes one of Slurm's own federations of clusters that keep their accounts in one
// slurmdbd, and returns when their controllers know each other.
func Federate(ctx context.Context, name string, clusters ...*Cluster) error {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = c.Name
	}
	if err := clusters[0].manage(ctx, "add", "federation", name, "clusters="+strings.Join(names, ",")); err != nil {
		return err
	}
	for _, c := range clusters {
		err := c.until(ctx, func() error {
			out, err := c.Command(ctx, "scontrol", "show", "federation").Output()
			if err == nil && strings.Count(string(out), "PersistConnSend/Recv:Yes/Yes Synced:Yes") < len(clusters)-1 {
				err = fmt.Errorf("scontrol says %q", out)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startDatabase starts a MariaDB of the cluster's own and returns its socket. Its temporary files
// lie in the cluster's folder: a MariaDB that starts removes all such files of a folder, also those
// of another that is at work.
func (c *Cluster) startDatabase(ctx context.Context, username string) (socket string, err error) {
	data := filepath.Join(c.Folder, "db")
	socket = filepath.Join(c.Folder, "db.sock")
	install, err := lookUp("mariadb-install-db")
	if err != nil {
		return "", err
	}
	temporary := filepath.Join(c.Folder, "db.tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user="+username, "--datadir="+data, "--tmpdir="+temporary).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a database: %w: %s", err, out)
	}
	setup := filepath.Join(c.Folder, "db.sql")
	orders := "CREATE DATABASE accounts;\nCREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';\nCREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm';\n" +
		"GRANT ALL ON accounts.* TO 'slurm'@'127.0.0.1';\nGRANT ALL ON accounts.* TO 'slurm'@'localhost';\n"
	if err := os.WriteFile(setup, []byte(orders), 0o600); err != nil {
		return "", err
	}
	return socket, c.launch("", "mariadbd", "--no-defaults", "--user="+username, "--datadir="+data, "--tmpdir="+temporary, "--socket="+socket, "--pid-file="+filepath.Join(c.Folder, "db.pid"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", c.ports[2]), "--init-file="+setup, "--innodb-buffer-pool-size=32M", "--innodb-lock-wait-timeout=900")
}
