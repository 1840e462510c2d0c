#include "replay_session.h"

#include "congestion_state.h"

namespace eyelevel {

// Comes when the browser's options have chosen the controller, before anything
// is logged of it, and with every acknowledgement, so that a controller that
// is made anew for another path gets the number, too.
void ReplaySession::OnCongestionWindowChange(quic::QuicTime now) {
  SetCubicConnections(connection()->sent_packet_manager(),
                      emulated_connections_);
  QuicSimpleServerSession::OnCongestionWindowChange(now);
}

void ReplaySession::RegisterStreamPriority(
    quic::QuicStreamId id, bool is_static,
    const quic::QuicStreamPriority& priority) {
  QuicSimpleServerSession::RegisterStreamPriority(
      id, is_static,
      quic::QuicStreamPriority(scheduler_.PriorityFor(priority.http())));
  if (!is_static) {
    LogPriority(id, priority);
  }
}

void ReplaySession::UpdateStreamPriority(
    quic::QuicStreamId id, const quic::QuicStreamPriority& priority) {
  QuicSimpleServerSession::UpdateStreamPriority(
      id, quic::QuicStreamPriority(scheduler_.PriorityFor(priority.http())));
  LogPriority(id, priority);
}

void ReplaySession::LogPriority(quic::QuicStreamId id,
                                const quic::QuicStreamPriority& request) {
  if (log_ != nullptr) {
    log_->AddPriority(id, request.http(),
                      write_blocked_streams()->GetPriorityOfStream(id).http());
  }
}

}  // namespace eyelevel
