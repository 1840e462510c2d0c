// quiche's session with the testbed's settings, which may keep a log of its
// connection.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "connection_log.h"
#include "quiche/quic/core/quic_stream_priority.h"
#include "quiche/quic/core/quic_time.h"
#include "quiche/quic/core/quic_types.h"
#include "quiche/quic/tools/quic_simple_server_session.h"
#include "scheduler.h"

namespace eyelevel {

class ReplaySession : public quic::QuicSimpleServerSession {
 public:
  using QuicSimpleServerSession::QuicSimpleServerSession;
  ~ReplaySession() override { connection()->set_debug_visitor(nullptr); }

  // These three must be called before the session is initialized.
  void SetEmulatedConnections(uint32_t number) {
    emulated_connections_ = number;
  }
  void SetScheduler(const Scheduler& scheduler) { scheduler_ = scheduler; }
  void KeepLog(std::unique_ptr<ConnectionLog> log) {
    log_ = std::move(log);
    connection()->set_debug_visitor(log_.get());
  }

  void OnCongestionWindowChange(quic::QuicTime now) override;
  void RegisterStreamPriority(
      quic::QuicStreamId id, bool is_static,
      const quic::QuicStreamPriority& priority) override;
  void UpdateStreamPriority(quic::QuicStreamId id,
                            const quic::QuicStreamPriority& priority) override;

 private:
  void LogPriority(quic::QuicStreamId id,
                   const quic::QuicStreamPriority& request);

  uint32_t emulated_connections_ = 0;
  Scheduler scheduler_;
  std::unique_ptr<ConnectionLog> log_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_
