// Gives TCP Fast Open (RFC 7413) to a browser that lacks it. When this is preloaded into the browser, every TCP
// connection that the browser begins waits for its first bytes and sends them with the SYN (TCP_FASTOPEN_CONNECT,
// tcp(7)).

#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int connect(int fd, const struct sockaddr *address, socklen_t length) {
  static int (*real)(int, const struct sockaddr *, socklen_t);
  if (!real) real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");

  int type = 0, on = 1;
  socklen_t size = sizeof type;
  int is_stream = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
  if (is_stream && address->sa_family == AF_INET && ntohs(((const struct sockaddr_in *)address)->sin_port) == 443 &&
      setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) != 0) {
    perror("eyelevel: TCP Fast Open");
    abort();  // a run must not go on without it
  }
  return real(fd, address, length);
}
