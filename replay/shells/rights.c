// Preloaded into Mahimahi's shells (replay.shells.nested). The shells require to be setuid root and to be run by
// another user, and they drop root's rights before they continue. In our namespaces they have all rights that they
// need, whoever runs them, and setuid has no effect. So these functions report what the shells expect, and change
// nothing.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { ROOT = 0, CALLER = 65534 };

struct identity {
  unsigned int effective;
  int dropped;
};

static struct identity user = {ROOT, 0}, group = {ROOT, 0};

static int change(struct identity *identity, unsigned int effective) {
  if (identity->dropped && effective != CALLER) {
    errno = EPERM;
    return -1;
  }
  identity->effective = effective;
  return 0;
}

static int drop(struct identity *identity, unsigned int effective) {
  identity->dropped = 1;
  return change(identity, effective);
}

uid_t getuid(void) { return CALLER; }
gid_t getgid(void) { return CALLER; }
uid_t geteuid(void) { return user.effective; }
gid_t getegid(void) { return group.effective; }
int seteuid(uid_t effective) { return change(&user, effective); }
int setegid(gid_t effective) { return change(&group, effective); }
int setreuid(uid_t real, uid_t effective) { return real == CALLER ? drop(&user, effective) : -1; }
int setregid(gid_t real, gid_t effective) { return real == CALLER ? drop(&group, effective) : -1; }

// The shells also require that their network forwards packets, which an administrator would have to allow. Our network
// forwards only to the networks inside it.
__attribute__((constructor)) static void forward_packets(void) {
  static const char path[] = "/proc/sys/net/ipv4/ip_forward";
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, "1", 1) != 1) {
    perror(path);
    exit(1);
  }
  close(file);
}
