#include "server_processes.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace eyelevel {
namespace {

// Process numbers, and the names of their servers.
using Processes = absl::flat_hash_map<pid_t, absl::string_view>;

absl::Status NotStarted(absl::string_view name) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no process can be started for the server of ", name, ": ",
                   std::strerror(errno)));
}

void EndAll(const Processes& processes) {
  for (const auto& [process, name] : processes) {
    kill(process, SIGTERM);
  }
}

// Does not return. Nothing of what the processes share is destroyed, which
// would make a copy of it first.
[[noreturn]] void Serve(size_t place, pid_t parent, int errors,
                        absl::FunctionRef<absl::Status(size_t)> serve) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(1);
  }
  const absl::Status status = serve(place);
  if (!status.ok()) {
    // One write, so that the lines of several do not mix. If there is no room,
    // there is one that came first.
    const std::string text =
        absl::StrCat(status.message().substr(0, PIPE_BUF - 1), "\n");
    [[maybe_unused]] const ssize_t written =
        write(errors, text.data(), text.size());
  }
  _exit(status.ok() ? 0 : 1);
}

// Why a server ended that was not asked to. `wait_status` is of waitpid(2).
absl::Status CauseOfEnd(absl::string_view name, int wait_status, int errors) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return absl::AbortedError(absl::StrCat("the server of ", name,
                                           " was ended by signal ", number,
                                           " (", strsignal(number), ")"));
  }
  char text[PIPE_BUF];
  const ssize_t size = read(errors, text, sizeof text);
  if (size > 0) {
    const absl::string_view lines(text, size);
    return absl::UnavailableError(lines.substr(0, lines.find('\n')));
  }
  return absl::AbortedError(absl::StrCat(
      "the server of ", name, " ended with status ", WEXITSTATUS(wait_status)));
}

// Waits until all have ended.
absl::Status Await(Processes processes, const sigset_t& signals, int errors) {
  absl::Status status;
  for (bool ending = false; !processes.empty();) {
    int number;
    sigwait(&signals, &number);
    if (number != SIGCHLD) {
      ending = true;
      EndAll(processes);
      continue;
    }
    // One signal may stand for several children.
    int wait_status;
    for (pid_t process; (process = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
      const auto ended = processes.extract(process);
      if (!ending && !ended.empty()) {
        ending = true;
        status = CauseOfEnd(ended.mapped(), wait_status, errors);
        EndAll(processes);
      }
    }
  }
  return status;
}

}  // namespace

absl::Status RunServers(const std::vector<std::string>& names,
                        absl::FunctionRef<absl::Status(size_t)> serve) {
  // Whoever started this may have ignored it. Processes would end without it
  // then, and leave no status.
  signal(SIGCHLD, SIG_DFL);
  // Before the first process, so that none is missed. It stays so in them:
  // until they wait for signals themselves, these wait for them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  int errors[2];
  if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) != 0) {
    return NotStarted(names.front());
  }
  const absl::Cleanup closing = [&errors] {
    close(errors[0]);
    close(errors[1]);
  };
  const pid_t parent = getpid();
  Processes processes;
  processes.reserve(names.size());
  for (size_t place = 0; place < names.size(); ++place) {
    const pid_t process = fork();
    if (process == 0) {
      Serve(place, parent, errors[1], serve);
    }
    if (process < 0) {
      const absl::Status status = NotStarted(names[place]);
      EndAll(processes);
      Await(std::move(processes), signals, errors[0]).IgnoreError();
      return status;
    }
    processes.emplace(process, names[place]);
  }
  return Await(std::move(processes), signals, errors[0]);
}

}  // namespace eyelevel
