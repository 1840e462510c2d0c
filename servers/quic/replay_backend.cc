#include "replay_backend.h"

#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "quiche/common/quiche_mem_slice.h"
#include "quiche/quic/core/http/quic_spdy_session.h"
#include "quiche/quic/core/http/quic_spdy_stream.h"
#include "quiche/quic/core/quic_alarm_factory.h"
#include "quiche/quic/core/quic_connection.h"
#include "quiche/quic/core/quic_time.h"

namespace eyelevel {
namespace {

Request RequestOf(const quiche::HttpHeaderBlock& headers) {
  const auto value = [&](absl::string_view name) {
    const auto found = headers.find(name);
    return found == headers.end() ? absl::string_view() : found->second;
  };
  return {
      .method = value(":method"),
      .authority = value(":authority"),
      .target = value(":path"),
      .origin = value("origin"),
      .access_control_request_method = value("access-control-request-method"),
      .access_control_request_headers = value("access-control-request-headers"),
      .range = value("range"),
      .if_none_match = value("if-none-match"),
      .if_modified_since = value("if-modified-since"),
  };
}

quiche::HttpHeaderBlock HeaderBlock(const Answer& answer) {
  quiche::HttpHeaderBlock block;
  block[":status"] = answer.status;
  for (const auto& [name, value] : answer.headers) {
    block.AppendValueOrAddHeader(name, value);
  }
  return block;
}

void SendBody(quic::QuicSpdyStream& stream, absl::string_view body) {
  quiche::QuicheMemSlice slice(body.data(), body.size(),
                               [](absl::string_view) {});
  const quic::QuicConsumedData sent =
      stream.WriteBodySlices(absl::MakeSpan(&slice, 1), /*fin=*/true);
  // A stream takes no slice while its headers alone fill its buffer, which a
  // copy may always join.
  if (!sent.fin_consumed) {
    stream.WriteOrBufferBody(body, /*fin=*/true);
  }
}

void Send(quic::QuicSpdyStream& stream, const Answer& answer) {
  const quic::QuicConnection::ScopedPacketFlusher flusher(
      stream.spdy_session()->connection());
  stream.WriteHeaders(HeaderBlock(answer), /*fin=*/answer.body.empty(),
                      nullptr);
  if (!answer.body.empty()) {
    SendBody(stream, answer.body);
  }
}

class LateAnswer : public quic::QuicAlarm::DelegateWithContext {
 public:
  LateAnswer(quic::QuicSpdyStream& stream, Answer answer)
      : DelegateWithContext(stream.spdy_session()->connection()->context()),
        stream_(stream),
        answer_(std::move(answer)) {}

  void OnAlarm() override {
    // The browser may have lost interest.
    if (!stream_.write_side_closed()) {
      Send(stream_, answer_);
    }
  }

 private:
  quic::QuicSpdyStream& stream_;
  const Answer answer_;
};

}  // namespace

void ReplayBackend::FetchResponseFromBackend(
    const quiche::HttpHeaderBlock& request_headers,
    const std::string& /*request_body*/, RequestHandler* handler) {
  const Request request = RequestOf(request_headers);
  Answer answer = replay_.AnswerTo(request);
  log_.Add(request, answer);

  // Written to the stream itself: OnResponseBackendComplete would copy the
  // body.
  quic::QuicSpdyStream& stream = *handler->GetStream();
  const absl::Duration wait = answer.wait;
  if (!think_time_ || wait == absl::ZeroDuration()) {
    Send(stream, answer);
    return;
  }
  quic::QuicConnection& connection = *stream.spdy_session()->connection();
  // An answer that waits is a recorded one, so it outlives the request.
  std::unique_ptr<quic::QuicAlarm> alarm(
      connection.alarm_factory()->CreateAlarm(
          new LateAnswer(stream, std::move(answer))));
  alarm->Set(
      connection.clock()->Now() +
      quic::QuicTime::Delta::FromMicroseconds(absl::ToInt64Microseconds(wait)));
  late_.emplace(handler, std::move(alarm));
}

void ReplayBackend::CloseBackendResponseStream(RequestHandler* handler) {
  if (const auto late = late_.find(handler); late != late_.end()) {
    late->second->PermanentCancel();
    late_.erase(late);
  }
}

}  // namespace eyelevel
