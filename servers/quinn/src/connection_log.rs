//! A connection's congestion control over time, as a qlog in the form that `base/qlog.py` describes: a file for each
//! connection, without events of packets.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// Writing this many bytes to the page cache takes less time than sending a packet on the fastest link.
const PIECE_BYTES: usize = 64 * 1024;

/// The metrics of a connection. `delivered`: the bytes acknowledged since the previous metrics.
pub struct Metrics {
    pub window: u64,
    pub ssthresh: Option<u64>,
    pub pacing_bps: Option<u64>,
    pub in_flight: u64,
    pub smoothed_rtt: Option<Duration>,
    pub min_rtt: Option<Duration>,
    pub delivered: u64,
}

pub struct ConnectionLog {
    start: Instant,
    inner: Mutex<Inner>,
    /// Signals new losses; only the connection knows their number.
    losses: Notify,
}

struct Inner {
    file: Option<File>,
    path: PathBuf,
    buffer: Vec<u8>,
    last_ms: f64,
    delivered: u64,
    /// The metrics as last written; only those that have changed are written again.
    metrics: Map<String, Value>,
    state: &'static str,
}

impl ConnectionLog {
    /// Creates a file in `folder`, with the start time and the addresses of the connection, and with a unique id.
    pub fn create(folder: &Path, server: SocketAddr, client: SocketAddr, id: &str) -> Result<Self> {
        let path = folder.join(format!("quic-{}-{id}.sqlog", server.ip()));
        let fault = || format!("cannot write the qlog {}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).open(&path).with_context(fault)?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let inner = Inner {
            file: Some(file),
            path,
            buffer: Vec::with_capacity(2 * PIECE_BYTES),
            last_ms: 0.0,
            delivered: 0,
            metrics: Map::new(),
            state: "",
        };
        let log = Self { start: Instant::now(), inner: Mutex::new(inner), losses: Notify::new() };
        log.lock().add_record(&json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": format!("QUIC {server} to {client}"),
            "trace": {
                "vantage_point": {"name": "quinn_server", "type": "server"},
                "common_fields": {
                    "ODCID": id,
                    "time_format": "relative",
                    "reference_time": rounded(began.as_secs_f64() * 1e3),
                    "protocol_type": ["QUIC", "HTTP3"],
                },
            },
        }));
        log.add(
            log.start,
            "connectivity:connection_started",
            &json!({
                "ip_version": if client.is_ipv4() { "ipv4" } else { "ipv6" },
                "src_ip": client.ip().to_string(),
                "dst_ip": server.ip().to_string(),
                "protocol": "QUIC",
                "src_port": client.port(),
                "dst_port": server.port(),
                "dst_cid": id,
            }),
        );
        Ok(log)
    }

    /// `data`: congestion_control, initial_congestion_window and others, as the connection reports them.
    pub fn add_parameters(&self, data: &Value) {
        self.add(Instant::now(), "recovery:parameters_set", data);
    }

    pub fn add_metrics(&self, now: Instant, metrics: &Metrics) {
        let mut inner = self.lock();
        inner.delivered += metrics.delivered;
        let delivered = inner.delivered;
        let ms = |time: Option<Duration>| time.map(|time| rounded(time.as_secs_f64() * 1e3));
        let values = [
            ("min_rtt", ms(metrics.min_rtt).map(Value::from)),
            ("smoothed_rtt", ms(metrics.smoothed_rtt).map(Value::from)),
            ("congestion_window", Some(metrics.window.into())),
            ("bytes_in_flight", Some(metrics.in_flight.into())),
            ("ssthresh", metrics.ssthresh.map(Value::from)),
            ("pacing_rate", metrics.pacing_bps.map(Value::from)),
            ("bytes_delivered", (delivered > 0).then(|| delivered.into())),
        ];
        let values = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        inner.add_changes(self.time_ms(now), values);
    }

    /// `packets`: how many were lost since the start.
    pub fn add_losses(&self, packets: u64) {
        let now_ms = self.time_ms(Instant::now());
        self.lock().add_changes(now_ms, [("packets_lost".to_owned(), packets.into())]);
    }

    pub fn add_state(&self, now: Instant, state: &'static str) {
        let mut inner = self.lock();
        let old = mem::replace(&mut inner.state, state);
        if old != state {
            let data = if old.is_empty() { json!({"new": state}) } else { json!({"old": old, "new": state}) };
            inner.add_event(self.time_ms(now), "recovery:congestion_state_updated", &data);
        }
    }

    /// Signals new losses; only the connection knows their number.
    pub fn note_losses(&self) {
        self.losses.notify_one();
    }

    /// Waits until losses were signalled since the last call.
    pub async fn new_losses(&self) {
        self.losses.notified().await;
    }

    /// The connection is over. `by_client`: whether the client ended it; `code`: the reason. Later events are not
    /// written.
    pub fn close(&self, by_client: bool, code: u64) {
        let owner = if by_client { "remote" } else { "local" };
        let data = json!({"owner": owner, "connection_code": code});
        self.add(Instant::now(), "connectivity:connection_closed", &data);
        let mut inner = self.lock();
        inner.flush();
        inner.file = None;
    }

    fn add(&self, now: Instant, name: &str, data: &Value) {
        let now_ms = self.time_ms(now);
        self.lock().add_event(now_ms, name, data);
    }

    fn time_ms(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.start).as_secs_f64() * 1e3
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with it")
    }
}

impl Inner {
    fn add_changes(&mut self, now_ms: f64, values: impl IntoIterator<Item = (String, Value)>) {
        let mut changed = Map::new();
        for (name, value) in values {
            if self.metrics.get(&name) != Some(&value) {
                changed.insert(name.clone(), value.clone());
                self.metrics.insert(name, value);
            }
        }
        if !changed.is_empty() {
            self.add_event(now_ms, "recovery:metrics_updated", &changed.into());
        }
    }

    fn add_event(&mut self, now_ms: f64, name: &str, data: &Value) {
        // An event of the connection itself bears the time at which its packets came in. By now, later events may have
        // been written, so its time is raised to theirs.
        self.last_ms = self.last_ms.max(rounded(now_ms));
        self.add_record(&json!({"time": self.last_ms, "name": name, "data": data}));
    }

    fn add_record(&mut self, record: &Value) {
        self.buffer.push(0x1e);
        self.buffer.extend_from_slice(record.to_string().as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(&self.buffer)) {
            // The page load continues; readers of the file will find it cut short.
            eprintln!("quinn_server: cannot write the qlog {}: {error}", self.path.display());
            self.file = None;
        }
        self.buffer.clear();
    }
}

/// A time in ms, rounded to the microsecond.
fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_log_has_what_changed_in_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:443".parse().unwrap();
        let log = ConnectionLog::create(folder.path(), address, address, "0a").unwrap();
        let metrics = |window| Metrics {
            window,
            ssthresh: None,
            pacing_bps: None,
            in_flight: 0,
            smoothed_rtt: Some(Duration::from_millis(60)),
            min_rtt: None,
            delivered: 100,
        };
        let now = Instant::now();
        log.add_metrics(now, &metrics(1000));
        log.add_metrics(now - Duration::from_millis(5), &metrics(1000));
        log.add_state(now, "slow_start");
        log.add_state(now, "slow_start");
        log.add_state(now, "recovery");
        log.close(true, 256);
        log.add_state(now, "slow_start");
        let text = fs::read_to_string(folder.path().join("quic-127.0.0.1-0a.sqlog")).unwrap();
        let records: Vec<Value> =
            text.split('\x1e').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
        let events: Vec<_> =
            records[1..].iter().map(|event| (event["name"].as_str().unwrap(), &event["data"])).collect();
        assert_eq!(events.len(), 6);
        assert_eq!(events[1].1["congestion_window"], 1000);
        assert_eq!(events[2], ("recovery:metrics_updated", &json!({"bytes_delivered": 200})));
        assert_eq!(events[4].1, &json!({"old": "slow_start", "new": "recovery"}));
        assert_eq!(events[5].1, &json!({"owner": "remote", "connection_code": 256}));
        let times: Vec<_> = records[1..].iter().map(|event| event["time"].as_f64().unwrap()).collect();
        assert!(times.is_sorted());
    }
}
