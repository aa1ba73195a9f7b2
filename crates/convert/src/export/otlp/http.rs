//! Requests to a collector: OTLP/HTTP, with protobuf.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use undertick_format::TraceError;
use ureq::http::{Response, Uri};

use super::batches::Transport;

/// Time for one request and its answer; the SDKs of OpenTelemetry allow as much.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most attempts for one request.
const MOST_ATTEMPTS: u32 = 8;
/// Wait before the second attempt; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait, also if the collector asks for a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Step in which a wait looks for an interruption.
const STEP: Duration = Duration::from_millis(50);
/// Most bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 1 << 20;

/// What a collector received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests that were answered with success.
    pub requests: u64,
    /// Spans in them, less those that the collector rejected.
    pub spans: u64,
    /// Spans that the collector rejected (`partial_success`).
    pub rejected: u64,
    /// The first message of the collector about rejected spans, or a warning.
    pub message: Option<String>,
    /// Attempts beyond the first of each request.
    pub retries: u64,
}

/// An address of a collector: `http://HOST:PORT[/v1/traces]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// Returns the endpoint that a text names, or `None` if it is a file's name.
    ///
    /// # Errors
    /// An address of another protocol, or one without a host.
    pub fn parse(text: &str) -> Result<Option<Self>, TraceError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(None);
        };
        let usage = |why: &str| Err(TraceError::Usage(format!("{text}: {why}")));
        match scheme {
            "http" => {}
            "https" => {
                return usage(
                    "traces are sent without TLS; send them to a collector on this machine, \
                     http://localhost:4318, which forwards them",
                );
            }
            _ => {
                return usage(
                    "only OTLP/HTTP is spoken, not gRPC; give the collector's HTTP address, \
                     http://HOST:4318",
                );
            }
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() || host.starts_with(':') {
            return usage("the host is missing; write http://HOST:PORT");
        }
        if host.ends_with(":4317") {
            return usage(
                "port 4317 is that of OTLP/gRPC, which is not spoken; give the collector's HTTP \
                 address, usually port 4318",
            );
        }
        let path = if path.is_empty() { "v1/traces" } else { path };
        let url = format!("http://{host}/{path}");
        if host.contains(['?', '#', '@']) || url.parse::<Uri>().is_err() {
            return usage("this is no address; write http://HOST:PORT[/PATH]");
        }
        Ok(Some(Self(url)))
    }

    /// The whole address, with its path.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0
    }
}

/// The client of one collector.
pub(super) struct Http<'a> {
    endpoint: &'a Endpoint,
    agent: ureq::Agent,
    stop: &'a AtomicBool,
    pub(super) sent: Sent,
    /// Encoded request.
    body: Vec<u8>,
}

/// The result of an attempt.
enum Attempt {
    Done(ExportTraceServiceResponse),
    /// It may succeed later, after that wait if the collector named one.
    Later(String, Option<Duration>),
    Refused(String),
}

/// The body of an answer that is an error (`google.rpc.Status`).
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(string, tag = "2")]
    message: String,
}

impl<'a> Http<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, stop: &'a AtomicBool) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // A redirected POST would lose its body.
            .max_redirects(0)
            .user_agent(concat!("undertick/", env!("CARGO_PKG_VERSION")))
            .proxy(None)
            .build();
        Self {
            endpoint,
            agent: config.into(),
            stop,
            sent: Sent::default(),
            body: Vec::new(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn attempt(&self) -> Attempt {
        let request =
            (self.agent.post(self.endpoint.url())).header("content-type", "application/x-protobuf");
        match request.send(&self.body[..]) {
            Ok(response) => judge(response),
            // Before anything was sent, the address is wrong or nothing listens there.
            Err(error) if self.sent.requests == 0 && is_no_connection(&error) => {
                Attempt::Refused(format!("{error}; does a collector listen there?"))
            }
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::Http(_))) => {
                Attempt::Refused(error.to_string())
            }
            Err(error) => Attempt::Later(error.to_string(), None),
        }
    }

    /// Waits; an interruption ends it.
    fn wait(&self, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time && !self.is_stopped() {
            std::thread::sleep(STEP.min(time));
        }
    }

    fn accept(&mut self, response: ExportTraceServiceResponse, spans: u64) {
        let partial = response.partial_success.unwrap_or_default();
        let rejected = u64::try_from(partial.rejected_spans)
            .unwrap_or(0)
            .min(spans);
        self.sent.requests += 1;
        self.sent.rejected += rejected;
        self.sent.spans += spans - rejected;
        if !partial.error_message.is_empty() {
            self.sent.message.get_or_insert(partial.error_message);
        }
    }
}

fn is_no_connection(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        _ => false,
    }
}

fn judge(mut response: Response<ureq::Body>) -> Attempt {
    let status = response.status();
    let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    let wait = header("retry-after").and_then(|text| text.trim().parse().ok());
    let is_protobuf = header("content-type").is_some_and(|kind| kind.contains("protobuf"));
    let body = response.body_mut().with_config().limit(LONGEST_ANSWER);
    let body = match body.read_to_vec() {
        Ok(body) => body,
        Err(error) => return Attempt::Later(format!("the answer broke off: {error}"), None),
    };
    if status.is_success() {
        return match ExportTraceServiceResponse::decode(&body[..]) {
            Ok(response) => Attempt::Done(response),
            Err(_) => Attempt::Refused(format!(
                "{status}, but the answer is not that of an OTLP collector; is the path right \
                 (/v1/traces)?"
            )),
        };
    }
    let said = match is_protobuf {
        true => RpcStatus::decode(&body[..]).unwrap_or_default().message,
        false => String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned(),
    };
    let said = match said.trim() {
        "" => status.to_string(),
        said => format!("{status}: {said}"),
    };
    match status.as_u16() {
        429 | 502 | 503 | 504 => Attempt::Later(said, wait.map(Duration::from_secs)),
        _ => Attempt::Refused(said),
    }
}

impl Transport for Http<'_> {
    const ACTION: &'static str = "cannot send";

    fn send(&mut self, request: &ExportTraceServiceRequest, spans: u64) -> io::Result<()> {
        self.body.clear();
        request.encode(&mut self.body)?;
        let mut backoff = FIRST_WAIT;
        for attempt in 1..=MOST_ATTEMPTS {
            if self.is_stopped() {
                break;
            }
            match self.attempt() {
                Attempt::Done(response) => {
                    self.accept(response, spans);
                    return Ok(());
                }
                Attempt::Refused(why) => return Err(io::Error::other(why)),
                Attempt::Later(why, _) if attempt == MOST_ATTEMPTS => {
                    return Err(io::Error::other(format!("{why} ({attempt} attempts)")));
                }
                Attempt::Later(_, asked) => {
                    self.sent.retries += 1;
                    self.wait(asked.unwrap_or(backoff).min(LONGEST_WAIT));
                    backoff *= 2;
                }
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
