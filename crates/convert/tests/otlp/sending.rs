//! Sending to a collector, played by a server of this test that answers as it is told.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use undertick_convert::export::otlp::{Endpoint, Exported, Target, export_spans};
use undertick_format::TraceError;

use super::support::{spans, trace};

/// An answer: status line, further header lines, body.
type Answer = (&'static str, &'static str, Vec<u8>);

/// Path and body of a request.
type Received = (String, Vec<u8>);

struct Collector {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
    /// Set once the first request has come.
    stop: Arc<AtomicBool>,
}

/// Answers requests in turn, then with success.
fn collector(answers: Vec<Answer>) -> Collector {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let (all, is_begun) = (received.clone(), stop.clone());
    let mut answers = VecDeque::from(answers);
    // The thread ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut path, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let lower = line.to_ascii_lowercase();
                if path.is_empty() {
                    path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                }
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            all.lock().unwrap().push((path, body));
            is_begun.store(true, Ordering::Relaxed);
            let success = (
                "200 OK",
                "content-type: application/x-protobuf\r\n",
                Vec::new(),
            );
            let (status, headers, body) = answers.pop_front().unwrap_or(success);
            let head = format!(
                "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(&[head.as_bytes(), &body].concat())
                .unwrap();
        }
    });
    Collector {
        address,
        received,
        stop,
    }
}

/// Sends the spans of 2500 calls, which are two requests.
fn send(address: &str, stop: &AtomicBool) -> Result<Exported, TraceError> {
    let dir = tempfile::tempdir().unwrap();
    let events: Vec<String> = (0..2500)
        .map(|n| {
            format!(
                r#"{{"ph":"X","name":"call {}","pid":1,"tid":1,"ts":{n},"dur":0.5}}"#,
                n % 9
            )
        })
        .collect();
    let trace = trace(dir.path(), &events.join(","));
    let endpoint = Endpoint::parse(address).unwrap().unwrap();
    export_spans(
        &trace,
        Target::Collector(&endpoint),
        None,
        stop,
        &mut |_| {},
    )
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn every_span_arrives_once_though_the_collector_is_busy() {
    let busy = (
        "503 Service Unavailable",
        "retry-after: 0\r\n",
        b"later".to_vec(),
    );
    let too_many = ("429 Too Many Requests", "retry-after: 1\r\n", Vec::new());
    let collector = collector(vec![busy, too_many]);
    let begin = std::time::Instant::now();
    let sent = send(&collector.address, &never()).unwrap().sent.unwrap();
    assert_eq!(
        (sent.requests, sent.spans, sent.rejected, sent.retries),
        (2, 2500, 0, 2)
    );
    assert!(
        begin.elapsed() >= std::time::Duration::from_secs(1),
        "it waited as asked"
    );
    let received = collector.received.lock().unwrap();
    assert!(received.iter().all(|(path, _)| path == "/v1/traces"));
    let bodies: Vec<&[u8]> = received.iter().map(|(_, body)| &body[..]).collect();
    assert_eq!(bodies.len(), 4);
    assert!(
        bodies[0] == bodies[1] && bodies[1] == bodies[2],
        "the same request again"
    );
    let accepted: Vec<ExportTraceServiceRequest> = (bodies[2..].iter())
        .map(|body| Message::decode(*body).unwrap())
        .collect();
    let mut starts: Vec<u64> = spans(&accepted)
        .iter()
        .map(|s| s.start_time_unix_nano)
        .collect();
    starts.sort_unstable();
    let all: Vec<u64> = (0..2500).map(|n| n * 1000).collect();
    assert_eq!(starts, all);
}

#[test]
fn rejected_spans_are_counted() {
    let response = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 48,
            error_message: "too old".to_owned(),
        }),
    };
    let collector = collector(vec![("200 OK", "", response.encode_to_vec())]);
    let sent = send(&collector.address, &never()).unwrap().sent.unwrap();
    assert_eq!((sent.spans, sent.rejected), (2452, 48));
    assert_eq!(sent.message.as_deref(), Some("too old"));
}

#[test]
fn a_refusal_is_not_repeated_and_says_why() {
    let mut status = vec![0x08, 3, 0x12, 9];
    status.extend_from_slice(b"bad spans");
    let protobuf = "content-type: application/x-protobuf\r\n";
    for (answer, word) in [
        (
            ("400 Bad Request", protobuf, status),
            "400 Bad Request: bad spans",
        ),
        (
            ("404 Not Found", "", b"no such page".to_vec()),
            "no such page",
        ),
        (("200 OK", "", b"<html>".to_vec()), "/v1/traces"),
    ] {
        let collector = collector(vec![answer]);
        let error = send(&collector.address, &never()).unwrap_err().to_string();
        assert!(
            error.contains(word) && error.contains(&collector.address),
            "{error}"
        );
        assert_eq!(collector.received.lock().unwrap().len(), 1);
    }
}

#[test]
fn an_interruption_ends_it_and_says_what_was_received() {
    let collector = collector(Vec::new());
    let exported = send(&collector.address, &collector.stop).unwrap();
    assert!(exported.interrupted);
    let sent = exported.sent.unwrap();
    assert_eq!((sent.requests, sent.spans), (1, 2048));
    assert_eq!(collector.received.lock().unwrap().len(), 1);
}

#[test]
fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = send(&address, &never()).unwrap_err().to_string();
    assert!(error.contains("does a collector listen there?"), "{error}");
}

#[test]
fn addresses() {
    let url = |text: &str| {
        Endpoint::parse(text)
            .unwrap()
            .map(|found| found.url().to_owned())
    };
    assert_eq!(
        url("http://h:4318").as_deref(),
        Some("http://h:4318/v1/traces")
    );
    assert_eq!(
        url("http://h:4318/").as_deref(),
        Some("http://h:4318/v1/traces")
    );
    assert_eq!(
        url("http://h/x/v1/traces").as_deref(),
        Some("http://h/x/v1/traces")
    );
    assert_eq!(url("run.jsonl"), None);
    for (text, word) in [
        ("https://h", "TLS"),
        ("grpc://h:4317", "http://HOST:4318"),
        ("http://h:4317", "4318"),
        ("http://:4318", "host"),
    ] {
        let error = Endpoint::parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}
