// A qlog in the making: draft-ietf-quic-qlog-main-schema (version 0.3, which
// qvis opens) as JSON text sequences (RFC 7464), one connection a file.

#ifndef EYELEVEL_SERVERS_QUIC_QLOG_FILE_H_
#define EYELEVEL_SERVERS_QUIC_QLOG_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace eyelevel {

// Written in large pieces, and whole when it is destroyed. A write error is
// reported on stderr, once.
class QlogFile {
 public:
  // A new file at `path`; there must be none yet.
  static absl::StatusOr<QlogFile> Create(const std::string& path);

  QlogFile(QlogFile&& other);
  QlogFile(const QlogFile&) = delete;
  QlogFile& operator=(const QlogFile&) = delete;
  ~QlogFile();

  // The first record. `reference_us`: what the times of events count from, in
  // microseconds since 1970. `title` and `connection_id` hold nothing that JSON
  // would escape.
  void AddHeader(absl::string_view title, absl::string_view connection_id,
                 int64_t reference_us);

  // `data` is the JSON text of an object. Events come in the order of their
  // times, in microseconds.
  void AddEvent(int64_t time_us, absl::string_view name,
                absl::string_view data);

  void Flush();

 private:
  QlogFile(int fd, std::string path);

  int fd_;
  std::string path_;
  std::string buffer_;
};

// Microseconds as the milliseconds of qlog, to the microsecond.
std::string Milliseconds(int64_t microseconds);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_QLOG_FILE_H_
