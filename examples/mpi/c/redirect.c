/* Redirect is preloaded into the processes of an MPI program. Open MPI's processes
 * tell each other at which port of which address they listen. For those at other
 * sites that means nothing here: connections to them go to the launcher's port for
 * that process instead, which carries them there. And a process listens on loopback
 * only, as nobody reaches it in another way.
 *
 * A process is known by its port: process r listens at a port p, FIRST <= p < LAST,
 * with (p - FIRST) % n = r; see ../ports.go. MPI_REDIRECT has the launcher's port for
 * each of the n processes, separated by commas; 0: that one is at this site. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { FIRST = 20000, LAST = 32768 };

/* launcher returns the launcher's port for the process at a port; 0: there is none. */
static int launcher(int port)
{
	const char *list = getenv("MPI_REDIRECT");
	if (!list || port < FIRST || port >= LAST)
		return 0;
	int n = 1;
	for (const char *c = list; *c; c++)
		n += *c == ',';
	for (int i = (port - FIRST) % n; i > 0; i--)
		list = strchr(list, ',') + 1;
	return atoi(list);
}

int connect(int fd, const struct sockaddr *to, socklen_t size)
{
	int (*next)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	struct sockaddr_in a;
	if (size >= sizeof a && to->sa_family == AF_INET) {
		memcpy(&a, to, sizeof a);
		int port = launcher(ntohs(a.sin_port));
		if (port && ntohl(a.sin_addr.s_addr) == INADDR_LOOPBACK) {
			a.sin_port = htons(port);
			return next(fd, (struct sockaddr *)&a, sizeof a);
		}
	}
	return next(fd, to, size);
}

int bind(int fd, const struct sockaddr *at, socklen_t size)
{
	int (*next)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
	struct sockaddr_in a;
	if (size >= sizeof a && at->sa_family == AF_INET && getenv("MPI_REDIRECT")) {
		memcpy(&a, at, sizeof a);
		int port = ntohs(a.sin_port);
		if (port >= FIRST && port < LAST && a.sin_addr.s_addr == htonl(INADDR_ANY)) {
			a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			return next(fd, (struct sockaddr *)&a, sizeof a);
		}
	}
	return next(fd, at, size);
}
