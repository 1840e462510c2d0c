// quiche's session, which may keep a log of its connection.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_

#include <memory>
#include <utility>

#include "connection_log.h"
#include "quiche/quic/tools/quic_simple_server_session.h"

namespace eyelevel {

class ReplaySession : public quic::QuicSimpleServerSession {
 public:
  using QuicSimpleServerSession::QuicSimpleServerSession;
  ~ReplaySession() override { connection()->set_debug_visitor(nullptr); }

  // Must be called before the session is initialized.
  void KeepLog(std::unique_ptr<ConnectionLog> log) {
    log_ = std::move(log);
    connection()->set_debug_visitor(log_.get());
  }

 private:
  std::unique_ptr<ConnectionLog> log_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_SESSION_H_
