#include "scheduler.h"

#include "absl/strings/str_join.h"
#include "quiche/quic/platform/api/quic_flags.h"

namespace eyelevel {
namespace {

struct Description {
  absl::string_view name;
  bool by_urgency;
  Turns turns;
};

constexpr Description kSchedulers[] = {
    {"urgency", true, Turns::kAll},
    {"urgency-incremental", true, Turns::kIncremental},
    {"urgency-first-come", true, Turns::kNone},
    {"fair", false, Turns::kAll},
    {"first-come", false, Turns::kNone},
};

}  // namespace

std::optional<Scheduler> Scheduler::Named(absl::string_view name) {
  for (const auto& [known, by_urgency, turns] : kSchedulers) {
    if (known == name) {
      return Scheduler(known, by_urgency, turns);
    }
  }
  return std::nullopt;
}

std::string Scheduler::Names() {
  return absl::StrJoin(kSchedulers, ", ",
                       [](std::string* out, const Description& description) {
                         out->append(description.name);
                       });
}

void Scheduler::SetUpQuiche() const {
  SetQuicReloadableFlag(quic_priority_respect_incremental,
                        turns_ != Turns::kAll);
}

quic::HttpStreamPriority Scheduler::PriorityFor(
    quic::HttpStreamPriority request) const {
  if (!by_urgency_) {
    request.urgency = quic::HttpStreamPriority::kDefaultUrgency;
  }
  if (turns_ == Turns::kNone) {
    request.incremental = false;
  }
  return request;
}

absl::string_view Scheduler::NameInForce() const {
  const bool in_force =
      GetQuicReloadableFlag(quic_priority_respect_incremental) ==
      (turns_ != Turns::kAll);
  return in_force ? name_ : "unknown";
}

}  // namespace eyelevel
