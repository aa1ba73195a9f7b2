//! Perfetto's SDK beside the floor: a session in the program itself, with a buffer of 64 MiB.

use peers::{Floor, timed, told};
use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::{
    track_event_begin, track_event_categories, track_event_end, track_event_instant,
};

track_event_categories! {
    pub mod categories {
        ( "peers", "Points of the benchmark", [] ),
    }
}
use categories as perfetto_te_ns;

fn main() {
    let (blocks, n) = told();
    Producer::init(
        ProducerInitArgsBuilder::new()
            .backends(Backends::IN_PROCESS)
            .build(),
    );
    TrackEvent::init();
    categories::register().expect("the category is registered once");
    let mut session = TracingSession::in_process().expect("a session in this program");
    session.setup(&config());
    session.start_blocking();
    let mut floor = Floor::default();
    for _ in 0..blocks {
        timed("floor", n, |n| floor.run(n));
        timed("event", n, |n| (0..n).for_each(event));
        timed("section", n, |n| (0..n).for_each(|_| section()));
    }
    session.stop_blocking();
}

fn event(i: u32) {
    track_event_instant!("peers", "event", |context: &mut EventContext| {
        context.add_debug_arg("payload", TrackEventDebugArg::Int64(i64::from(i)));
    });
}

fn section() {
    track_event_begin!("peers", "section");
    track_event_end!("peers");
}

/// Returns the session's configuration in Perfetto's encoding.
fn config() -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let bytes = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    let mut config = TraceConfig { msg: &mut message };
    config.set_buffers(|buffer: &mut TraceConfigBufferConfig| {
        buffer.set_size_kb(65536);
    });
    config.set_data_sources(|sources: &mut TraceConfigDataSource| {
        sources.set_config(|source: &mut DataSourceConfig| {
            source.set_name("track_event");
            source.set_track_event_config(|events: &mut TrackEventConfig| {
                events.set_enabled_categories("peers");
            });
        });
    });
    message.finalize();
    let mut encoded = vec![0; writer.stream_writer().get_written_size()];
    bytes.copy_into(&mut encoded);
    encoded
}
