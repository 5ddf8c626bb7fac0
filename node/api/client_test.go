package api

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"testing"
)

// A daemon that goes away while it is asked has not answered, however its end shows.
func TestDaemonGoesAway(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"ends":  (*net.TCPConn).Close,
		"reset": func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
		"amid the answer": func(c *net.TCPConn) error {
			_, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"))
			return errors.Join(err, c.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			served := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				if err == nil {
					_, err = http.ReadRequest(bufio.NewReader(conn))
					err = errors.Join(err, end(conn.(*net.TCPConn)))
				}
				served <- err
			}()
			if _, err := NewRemoteClient("http://"+l.Addr().String(), "").Node(t.Context()); !errors.Is(err, ErrBroken) {
				t.Errorf("%v, want ErrBroken", err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
