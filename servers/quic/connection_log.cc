#include "connection_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "congestion_state.h"
#include "quiche/quic/core/congestion_control/rtt_stats.h"
#include "quiche/quic/core/congestion_control/send_algorithm_interface.h"
#include "quiche/quic/core/quic_bandwidth.h"
#include "quiche/quic/core/quic_constants.h"
#include "quiche/quic/core/quic_sent_packet_manager.h"
#include "quiche/quic/core/quic_tag.h"
#include "quiche/quic/core/quic_transmission_info.h"

namespace eyelevel {
namespace {

// A connection that has nothing left to send after a burst this short has not
// been limited by anything else meanwhile.
constexpr auto kBurst = quic::QuicTime::Delta::FromMilliseconds(1);

absl::string_view PacketType(quic::EncryptionLevel level) {
  switch (level) {
    case quic::ENCRYPTION_INITIAL:
      return "initial";
    case quic::ENCRYPTION_HANDSHAKE:
      return "handshake";
    case quic::ENCRYPTION_ZERO_RTT:
      return "0RTT";
    default:
      return "1RTT";
  }
}

std::string Header(quic::EncryptionLevel level, quic::QuicPacketNumber number) {
  return absl::StrCat("\"header\":{\"packet_type\":\"", PacketType(level),
                      "\",\"packet_number\":", number.ToUint64(), "}");
}

std::string Raw(uint64_t length) {
  return absl::StrCat("\"raw\":{\"length\":", length, "}");
}

std::string Object(const std::vector<std::string>& fields) {
  return absl::StrCat("{", absl::StrJoin(fields, ","), "}");
}

std::string Field(absl::string_view name, uint64_t value) {
  return absl::StrCat("\"", name, "\":", value);
}

std::string Text(absl::string_view name, absl::string_view value) {
  return absl::StrCat("\"", name, "\":\"", value, "\"");
}

// As RFC 9218 writes it.
std::string PriorityText(const quic::HttpStreamPriority& priority) {
  return absl::StrCat("u=", priority.urgency,
                      priority.incremental ? ", i" : "");
}

std::string IpVersion(const quic::QuicSocketAddress& address) {
  return Text("ip_version", address.host().IsIPv4() ? "ipv4" : "ipv6");
}

}  // namespace

ConnectionLog::ConnectionLog(const quic::QuicConnection& connection,
                             const Scheduler& scheduler, QlogFile file)
    : connection_(connection),
      scheduler_(scheduler),
      file_(std::move(file)),
      start_(connection.clock()->Now()) {
  const quic::QuicSocketAddress& self = connection.self_address();
  const quic::QuicSocketAddress& peer = connection.peer_address();
  const std::string id = connection.connection_id().ToString();
  file_.AddHeader(
      absl::StrCat("QUIC ", self.ToString(), " to ", peer.ToString()), id,
      static_cast<int64_t>(connection.clock()->WallNow().ToUNIXMicroseconds()));
  AddEvent("connectivity:connection_started",
           Object({IpVersion(peer), Text("src_ip", peer.host().ToString()),
                   Text("dst_ip", self.host().ToString()),
                   Text("protocol", "QUIC"), Field("src_port", peer.port()),
                   Field("dst_port", self.port()), Text("dst_cid", id)}));
  AddState();
}

void ConnectionLog::OnPacketSent(
    quic::QuicPacketNumber packet_number, quic::QuicPacketLength packet_length,
    bool /*has_crypto_handshake*/, quic::TransmissionType /*transmission_type*/,
    quic::EncryptionLevel encryption_level,
    const quic::QuicFrames& /*retransmittable_frames*/,
    const quic::QuicFrames& /*nonretransmittable_frames*/,
    quic::QuicTime sent_time, uint32_t /*batch_id*/) {
  AddEvent(
      "transport:packet_sent",
      Object({Header(encryption_level, packet_number), Raw(packet_length)}));
  const quic::QuicUnackedPacketMap& unacked = manager().unacked_packets();
  if (!unacked.empty() && unacked.rbegin()->in_flight) {
    counted_bytes_ += packet_length;
    if (application_limited_) {
      resumed_ = resumed_.value_or(sent_time);
      application_limited_ = sent_time - *resumed_ < kBurst;
    }
  }
  AddMetrics();
  AddState();
}

void ConnectionLog::OnPacketReceived(
    const quic::QuicSocketAddress& /*self_address*/,
    const quic::QuicSocketAddress& /*peer_address*/,
    const quic::QuicEncryptedPacket& packet) {
  received_length_ = packet.length();
}

void ConnectionLog::OnIncomingAck(
    quic::QuicPacketNumber ack_packet_number,
    quic::EncryptionLevel ack_decrypted_level,
    const quic::QuicAckFrame& ack_frame, quic::QuicTime /*ack_receive_time*/,
    quic::QuicPacketNumber /*largest_observed*/, bool /*rtt_updated*/,
    quic::QuicPacketNumber /*least_unacked_sent_packet*/) {
  std::vector<std::string> ranges;
  for (const auto& range : ack_frame.packets) {
    ranges.push_back(absl::StrCat("[", range.min().ToUint64(), ",",
                                  range.max().ToUint64() - 1, "]"));
  }
  AddEvent("transport:packet_received",
           Object({Header(ack_decrypted_level, ack_packet_number),
                   Raw(received_length_),
                   absl::StrCat("\"frames\":[{\"frame_type\":\"ack\","
                                "\"acked_ranges\":[",
                                absl::StrJoin(ranges, ","), "]}]")}));
  // Packets have gone out and none of the writes since found nothing left.
  if (resumed_) {
    application_limited_ = false;
    resumed_.reset();
  }
  AddMetrics();
  AddState();
}

void ConnectionLog::OnPacketLoss(quic::QuicPacketNumber lost_packet_number,
                                 quic::EncryptionLevel encryption_level,
                                 quic::TransmissionType /*transmission_type*/,
                                 quic::QuicTime /*detection_time*/) {
  const quic::QuicTransmissionInfo& lost =
      manager().unacked_packets().GetTransmissionInfo(lost_packet_number);
  lost_bytes_ += lost.in_flight ? lost.bytes_sent : 0;
  ++lost_packets_;
  AddEvent("recovery:packet_lost",
           Object({Header(encryption_level, lost_packet_number)}));
}

// Comes at the end of every write that leaves nothing to send.
void ConnectionLog::OnApplicationLimited() {
  resumed_.reset();
  application_limited_ =
      manager().GetBytesInFlight() < manager().GetCongestionWindowInBytes();
  AddState();
}

void ConnectionLog::OnConfigProcessed(const SendParameters& parameters) {
  pacing_ = parameters.use_pacing;
}

// Comes after the controller has been chosen by it.
void ConnectionLog::OnSetFromConfig(const quic::QuicConfig& config) {
  std::vector<std::string> options;
  if (config.HasReceivedConnectionOptions()) {
    for (const quic::QuicTag tag : config.ReceivedConnectionOptions()) {
      options.push_back(absl::StrCat("\"", quic::QuicTagToString(tag), "\""));
    }
  }
  const uint64_t window =
      manager().initial_congestion_window() * quic::kDefaultTCPMSS;
  std::vector<std::string> fields = {
      Field("initial_congestion_window", window),
      Field("max_datagram_size", connection_.max_packet_length()),
      Text("congestion_control",
           ControllerName(
               manager().GetSendAlgorithm()->GetCongestionControlType()))};
  if (const auto connections = CubicConnections(manager())) {
    fields.push_back(Field("emulated_connections", *connections));
  }
  fields.push_back(absl::StrCat("\"pacing\":", pacing_ ? "true" : "false"));
  fields.push_back(Text("scheduler", scheduler_.NameInForce()));
  fields.push_back(absl::StrCat("\"connection_options\":[",
                                absl::StrJoin(options, ","), "]"));
  AddEvent("recovery:parameters_set", Object(fields));
  AddMetrics();
  AddState();
}

void ConnectionLog::AddPriority(quic::QuicStreamId id,
                                const quic::HttpStreamPriority& request,
                                const quic::HttpStreamPriority& in_force) {
  AddEvent("http:priority_updated",
           Object({Field("stream_id", id), Text("new", PriorityText(request)),
                   Text("in_force", PriorityText(in_force))}));
}

void ConnectionLog::OnConnectionClosed(
    const quic::QuicConnectionCloseFrame& frame,
    quic::ConnectionCloseSource source) {
  const bool from_peer = source == quic::ConnectionCloseSource::FROM_PEER;
  AddEvent("connectivity:connection_closed",
           Object({Text("owner", from_peer ? "remote" : "local"),
                   Field("connection_code", frame.wire_error_code)}));
  file_.Flush();
}

ConnectionLog::Metrics ConnectionLog::Measure() const {
  const quic::RttStats& rtt = *manager().GetRttStats();
  const quic::SendAlgorithmInterface& controller =
      *manager().GetSendAlgorithm();
  const uint64_t in_flight = manager().GetBytesInFlight();
  const uint64_t accounted = lost_bytes_ + in_flight;
  return {
      .min_rtt_us = rtt.min_rtt().ToMicroseconds(),
      .smoothed_rtt_us = rtt.smoothed_rtt().ToMicroseconds(),
      .latest_rtt_us = rtt.latest_rtt().ToMicroseconds(),
      .congestion_window = manager().GetCongestionWindowInBytes(),
      .bytes_in_flight = in_flight,
      .ssthresh = controller.GetSlowStartThreshold(),
      .pacing_rate = manager().GetPacingRate().ToBitsPerSecond(),
      .bandwidth_estimate = controller.BandwidthEstimate().ToBitsPerSecond(),
      .pto_count = manager().GetConsecutivePtoCount(),
      .bytes_delivered =
          counted_bytes_ > accounted ? counted_bytes_ - accounted : 0,
      .packets_lost = lost_packets_,
  };
}

void ConnectionLog::AddMetrics() {
  const Metrics now = Measure();
  std::vector<std::string> changed;
  const auto add_ms = [&](absl::string_view name, int64_t Metrics::* metric) {
    if (now.*metric != written_.*metric) {
      changed.push_back(
          absl::StrCat("\"", name, "\":", Milliseconds(now.*metric)));
    }
  };
  const auto add = [&](absl::string_view name, auto Metrics::* metric) {
    if (now.*metric != written_.*metric) {
      changed.push_back(absl::StrCat("\"", name, "\":", now.*metric));
    }
  };
  add_ms("min_rtt", &Metrics::min_rtt_us);
  add_ms("smoothed_rtt", &Metrics::smoothed_rtt_us);
  add_ms("latest_rtt", &Metrics::latest_rtt_us);
  add("congestion_window", &Metrics::congestion_window);
  add("bytes_in_flight", &Metrics::bytes_in_flight);
  add("ssthresh", &Metrics::ssthresh);
  add("pacing_rate", &Metrics::pacing_rate);
  add("bandwidth_estimate", &Metrics::bandwidth_estimate);
  add("pto_count", &Metrics::pto_count);
  add("bytes_delivered", &Metrics::bytes_delivered);
  add("packets_lost", &Metrics::packets_lost);
  if (!changed.empty()) {
    AddEvent("recovery:metrics_updated", Object(changed));
    written_ = now;
  }
}

void ConnectionLog::AddState() {
  const absl::string_view state =
      CongestionState(manager(), application_limited_);
  if (state == state_) {
    return;
  }
  std::vector<std::string> fields;
  if (!state_.empty()) {
    fields.push_back(Text("old", state_));
  }
  fields.push_back(Text("new", state));
  AddEvent("recovery:congestion_state_updated", Object(fields));
  state_ = state;
}

// The clock is the machine's, which may be put back.
void ConnectionLog::AddEvent(absl::string_view name, absl::string_view data) {
  const quic::QuicTime now = connection_.clock()->Now();
  last_us_ = std::max(last_us_, (now - start_).ToMicroseconds());
  file_.AddEvent(last_us_, name, data);
}

}  // namespace eyelevel
