#include "request_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace eyelevel {

absl::StatusOr<RequestLog> RequestLog::Open(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot write the request log ", path, ": ", std::strerror(errno)));
  }
  return RequestLog(fd);
}

RequestLog::RequestLog(RequestLog&& other)
    : fd_(std::exchange(other.fd_, -1)) {}

RequestLog& RequestLog::operator=(RequestLog&& other) {
  std::swap(fd_, other.fd_);
  return *this;
}

RequestLog::~RequestLog() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void RequestLog::Add(const Request& request, const Answer& answer) {
  if (fd_ < 0) {
    return;
  }
  const std::string line =
      absl::StrCat(ToString(answer.kind), "\t", request.method, "\thttps://",
                   request.authority, request.target, "\t", answer.file, "\n");
  // One write, so that lines of several servers do not mix. A full disk must
  // not end the page load.
  [[maybe_unused]] const ssize_t written = write(fd_, line.data(), line.size());
}

}  // namespace eyelevel
