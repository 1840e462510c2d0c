#include "qlog_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace eyelevel {
namespace {

// A write of this size to the page cache takes less time than a packet of the
// fastest link.
constexpr size_t kPieceBytes = 64 * 1024;

}  // namespace

absl::StatusOr<QlogFile> QlogFile::Create(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat("cannot write the qlog ", path,
                                               ": ", std::strerror(errno)));
  }
  return QlogFile(fd, path);
}

QlogFile::QlogFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
  buffer_.reserve(2 * kPieceBytes);
}

QlogFile::QlogFile(QlogFile&& other)
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)) {}

QlogFile::~QlogFile() {
  Flush();
  if (fd_ >= 0) {
    close(fd_);
  }
}

void QlogFile::AddHeader(absl::string_view title,
                         absl::string_view connection_id,
                         int64_t reference_us) {
  absl::StrAppend(
      &buffer_,
      "\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"",
      title,
      "\",\"trace\":{\"vantage_point\":{\"name\":\"quic_server\",\"type\":"
      "\"server\"},\"common_fields\":{\"ODCID\":\"",
      connection_id, "\",\"time_format\":\"relative\",\"reference_time\":",
      Milliseconds(reference_us),
      ",\"protocol_type\":[\"QUIC\",\"HTTP3\"]}}}\n");
}

void QlogFile::AddEvent(int64_t time_us, absl::string_view name,
                        absl::string_view data) {
  absl::StrAppend(&buffer_, "\x1e{\"time\":", Milliseconds(time_us),
                  ",\"name\":\"", name, "\",\"data\":", data, "}\n");
  if (buffer_.size() >= kPieceBytes) {
    Flush();
  }
}

void QlogFile::Flush() {
  size_t done = 0;
  while (fd_ >= 0 && done < buffer_.size()) {
    const ssize_t written =
        write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      // The page load goes on; whoever reads the file finds it cut short.
      std::cerr << "quic_server: cannot write the qlog " << path_ << ": "
                << std::strerror(errno) << std::endl;
      close(std::exchange(fd_, -1));
    }
  }
  buffer_.clear();
}

std::string Milliseconds(int64_t microseconds) {
  const std::string fraction = absl::StrCat(1000 + microseconds % 1000);
  return absl::StrCat(microseconds / 1000, ".", fraction.substr(1));
}

}  // namespace eyelevel
