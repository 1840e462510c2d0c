// The state of a connection's congestion controller, in one word.

#ifndef EYELEVEL_SERVERS_QUIC_CONGESTION_STATE_H_
#define EYELEVEL_SERVERS_QUIC_CONGESTION_STATE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "quiche/quic/core/quic_sent_packet_manager.h"
#include "quiche/quic/core/quic_types.h"

namespace eyelevel {

// A controller as the testbed's settings call it: cubic, bbr, bbr2, ...
absl::string_view ControllerName(quic::CongestionControlType type);

// Makes Cubic behave as this many connections; other controllers have no such
// number.
void SetCubicConnections(quic::QuicSentPacketManager& manager, uint32_t number);

// The number of connections as which Cubic behaves, by its reaction to a loss;
// none for other controllers.
std::optional<uint32_t> CubicConnections(
    const quic::QuicSentPacketManager& manager);

// The first that holds of: pto (a probe timeout has fired and nothing was
// acknowledged since), recovery, probe_rtt, application_limited, and what the
// controller itself tells: slow_start or congestion_avoidance; startup, drain
// or probe_bw of BBR.
absl::string_view CongestionState(const quic::QuicSentPacketManager& manager,
                                  bool application_limited);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_CONGESTION_STATE_H_
