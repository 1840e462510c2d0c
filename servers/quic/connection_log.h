// A connection's congestion control over time, as a qlog.

#ifndef EYELEVEL_SERVERS_QUIC_CONNECTION_LOG_H_
#define EYELEVEL_SERVERS_QUIC_CONNECTION_LOG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "qlog_file.h"
#include "quiche/quic/core/frames/quic_ack_frame.h"
#include "quiche/quic/core/frames/quic_connection_close_frame.h"
#include "quiche/quic/core/frames/quic_frame.h"
#include "quiche/quic/core/quic_config.h"
#include "quiche/quic/core/quic_connection.h"
#include "quiche/quic/core/quic_packet_number.h"
#include "quiche/quic/core/quic_packets.h"
#include "quiche/quic/core/quic_stream_priority.h"
#include "quiche/quic/core/quic_time.h"
#include "quiche/quic/core/quic_types.h"
#include "quiche/quic/platform/api/quic_socket_address.h"
#include "scheduler.h"

namespace eyelevel {

// Told by the connection of what it sends, and of what is acknowledged, lost,
// or missing for want of data; looks at its state then, and never by itself.
//
// Events: connectivity:connection_started and connection_closed,
// transport:packet_sent, transport:packet_received (packets that acknowledge),
// recovery:packet_lost, recovery:parameters_set, recovery:metrics_updated (what
// has changed), recovery:congestion_state_updated (see CongestionState),
// http:priority_updated (a stream's, as the browser asks for it).
//
// Beyond the standard's, parameters_set has congestion_control, of Cubic its
// emulated_connections, pacing, the scheduler, and the connection_options that
// came; metrics_updated has bytes_delivered and packets_lost, both from the
// start, and bandwidth_estimate (bit/s) of BBR; priority_updated has in_force,
// the priority by which the server schedules.
class ConnectionLog : public quic::QuicConnectionDebugVisitor {
 public:
  // Logs to `file` until destroyed; `connection` must live as long.
  ConnectionLog(const quic::QuicConnection& connection,
                const Scheduler& scheduler, QlogFile file);

  void AddPriority(quic::QuicStreamId id,
                   const quic::HttpStreamPriority& request,
                   const quic::HttpStreamPriority& in_force);

  void OnPacketSent(quic::QuicPacketNumber packet_number,
                    quic::QuicPacketLength packet_length,
                    bool has_crypto_handshake,
                    quic::TransmissionType transmission_type,
                    quic::EncryptionLevel encryption_level,
                    const quic::QuicFrames& retransmittable_frames,
                    const quic::QuicFrames& nonretransmittable_frames,
                    quic::QuicTime sent_time, uint32_t batch_id) override;
  void OnPacketReceived(const quic::QuicSocketAddress& self_address,
                        const quic::QuicSocketAddress& peer_address,
                        const quic::QuicEncryptedPacket& packet) override;
  void OnIncomingAck(quic::QuicPacketNumber ack_packet_number,
                     quic::EncryptionLevel ack_decrypted_level,
                     const quic::QuicAckFrame& ack_frame,
                     quic::QuicTime ack_receive_time,
                     quic::QuicPacketNumber largest_observed, bool rtt_updated,
                     quic::QuicPacketNumber least_unacked_sent_packet) override;
  void OnPacketLoss(quic::QuicPacketNumber lost_packet_number,
                    quic::EncryptionLevel encryption_level,
                    quic::TransmissionType transmission_type,
                    quic::QuicTime detection_time) override;
  void OnApplicationLimited() override;
  void OnConfigProcessed(const SendParameters& parameters) override;
  void OnSetFromConfig(const quic::QuicConfig& config) override;
  void OnConnectionClosed(const quic::QuicConnectionCloseFrame& frame,
                          quic::ConnectionCloseSource source) override;

 private:
  // The last value written of each, so that only changes are written again.
  struct Metrics {
    int64_t min_rtt_us = 0;
    int64_t smoothed_rtt_us = 0;
    int64_t latest_rtt_us = 0;
    uint64_t congestion_window = 0;
    uint64_t bytes_in_flight = 0;
    uint64_t ssthresh = 0;
    int64_t pacing_rate = 0;
    int64_t bandwidth_estimate = 0;
    uint64_t pto_count = 0;
    uint64_t bytes_delivered = 0;
    uint64_t packets_lost = 0;
  };

  Metrics Measure() const;
  void AddMetrics();
  void AddState();
  void AddEvent(absl::string_view name, absl::string_view data);

  const quic::QuicSentPacketManager& manager() const {
    return connection_.sent_packet_manager();
  }

  const quic::QuicConnection& connection_;
  const Scheduler scheduler_;
  QlogFile file_;
  const quic::QuicTime start_;
  int64_t last_us_ = 0;

  Metrics written_;
  absl::string_view state_;
  bool pacing_ = false;
  // There was nothing to send when last asked, and room in the window.
  bool application_limited_ = false;
  // When the first packet went out since, unless that is settled.
  std::optional<quic::QuicTime> resumed_;
  quic::QuicByteCount received_length_ = 0;
  uint64_t counted_bytes_ = 0;  // Sent, as far as it counts as in flight.
  uint64_t lost_bytes_ = 0;
  uint64_t lost_packets_ = 0;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_CONNECTION_LOG_H_
