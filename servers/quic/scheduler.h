// In which order a connection sends the streams that have something to send.

#ifndef EYELEVEL_SERVERS_QUIC_SCHEDULER_H_
#define EYELEVEL_SERVERS_QUIC_SCHEDULER_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "quiche/quic/core/quic_stream_priority.h"

namespace eyelevel {

// Streams of the same urgency take turns of 16 kB, or go one after another, in
// the order in which they had something to send.
enum class Turns {
  kAll,          // All take turns.
  kIncremental,  // Those that ask for it do (RFC 9218, section 10).
  kNone,         // None does.
};

// quiche itself schedules, by priorities that this class gives to the streams
// in place of those that the browser asks for.
class Scheduler {
 public:
  // quiche's own: by urgency, all of one urgency take turns.
  Scheduler() = default;

  // The scheduler of this name; none if there is no such.
  static std::optional<Scheduler> Named(absl::string_view name);

  // All names, separated by ", ".
  static std::string Names();

  // Must be called before a session is made: quiche's list of streams reads a
  // flag when it is made, and never again.
  void SetUpQuiche() const;

  // The priority that a stream gets for the one that the browser asks for.
  quic::HttpStreamPriority PriorityFor(quic::HttpStreamPriority request) const;

  // The name of what holds for sessions that are made now: of this, or
  // "unknown" when quiche's flag is not as this one needs it.
  absl::string_view NameInForce() const;

 private:
  Scheduler(absl::string_view name, bool by_urgency, Turns turns)
      : name_(name), by_urgency_(by_urgency), turns_(turns) {}

  absl::string_view name_ = "urgency";
  bool by_urgency_ = true;  // Else all streams are of one urgency.
  Turns turns_ = Turns::kAll;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SCHEDULER_H_
