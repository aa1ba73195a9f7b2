//! Forms whole spans from the rows of a trace.

mod loose;

use std::collections::{HashMap, HashSet};
use std::io;

use undertick_format::read::Trace;
use undertick_format::schema::Kind;

use super::ids::{Ids, SpanIds};
use super::{Counts, names};
use crate::export::{Names, Row, Sink};
use loose::{Half, Loose};

/// Deepest nesting of spans in a thread.
const DEEPEST: usize = 1 << 16;
/// Most points that are kept for one span; OTLP counts the others.
const MOST_POINTS: usize = 4096;
/// Most points that are kept for all open spans together.
const MOST_OPEN_POINTS: usize = 1 << 20;

/// A span that has ended, or will not.
#[derive(Debug)]
pub(super) struct ClosedSpan<'a> {
    pub(super) name: &'a str,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) thread: Option<&'a str>,
    /// Ring and row of its begin.
    pub(super) at: (i32, u64),
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) is_finished: bool,
    /// It stands for a point in no span, with that payload.
    pub(super) instant: Option<i64>,
    pub(super) ids: SpanIds,
    pub(super) points: Vec<Point>,
    pub(super) points_dropped: u32,
}

/// A point in a span.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) ns: i64,
    pub(super) name: String,
    pub(super) payload: i64,
}

/// The receiver of spans.
pub(super) trait Output {
    /// Whether it wants points; without them nothing is kept of a span but its begin.
    const HAS_POINTS: bool;
    /// What failed, for messages.
    const ACTION: &'static str = "cannot read";

    fn span(&mut self, span: ClosedSpan<'_>) -> io::Result<()>;

    fn finish(&mut self) -> io::Result<()>;
}

/// A span that is open.
struct Open {
    event: i32,
    pid: i32,
    tid: i32,
    row: u64,
    start_ns: i64,
    ids: SpanIds,
    /// It is exported, or was chosen to be.
    is_kept: bool,
    /// It is outermost among those that are kept.
    is_top: bool,
    points: Vec<Point>,
    points_dropped: u32,
}

/// The span to which identifiers that follow in the ring belong.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    Innermost,
    Loose(Loose),
}

#[derive(Default)]
struct Ring {
    rows: u64,
    stack: Vec<Open>,
    /// Begins beyond the deepest nesting whose end is still to come.
    beyond: u64,
    begun: Option<Begun>,
    /// The event of a span that ended elsewhere, whose own end comes next and means nothing.
    over: Option<i32>,
    /// The end of the span that began last, if it is known already.
    ended: Option<i64>,
    /// The last row, a `NAME new` of which it is not known yet whether it begins a span.
    perhaps: Option<(Row, u64)>,
}

/// What an instant may be, by its name.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Point,
    TraceHigh,
    TraceLow,
    Span,
    Parent,
    Elsewhere,
    New,
    /// The end of a span whose begin has that event.
    Closed(i32),
}

/// Forms spans, and passes them to an output.
pub(super) struct Spans<'a, O> {
    out: O,
    counts: &'a mut Counts,
    ids: Ids,
    rings: HashMap<i32, Ring>,
    /// Spans in the message form of which one side is known.
    loose: HashMap<Loose, Half>,
    /// The program gave identifiers to its spans.
    has_ids: bool,
    roles: HashMap<(i32, i32), Role>,
    /// Numbers of events by process and name, for those whose name ends in `new`.
    news: HashMap<(Option<i32>, String), i32>,
    /// If only these spans are wanted, with what is nested in them: ring and row of their begins.
    chosen: Option<HashSet<(i32, u64)>>,
    open_points: usize,
    last_ns: i64,
    names: std::rc::Rc<Names>,
}

impl<'a, O: Output> Spans<'a, O> {
    pub(super) fn new(
        trace: &Trace,
        out: O,
        chosen: Option<HashSet<(i32, u64)>>,
        counts: &'a mut Counts,
    ) -> Self {
        let news = (trace.manifest.names.iter())
            .filter(|name| name.name.ends_with(names::NEW))
            .map(|name| ((name.pid, name.name.clone()), i32::from(name.event)));
        let has_ids = (trace.manifest.names.iter()).any(|name| name.name == names::TRACE_HIGH);
        Self {
            out,
            counts,
            has_ids,
            ids: Ids::new(&trace.manifest),
            rings: HashMap::new(),
            loose: HashMap::new(),
            roles: HashMap::new(),
            news: news.collect(),
            chosen,
            open_points: 0,
            last_ns: 0,
            names: std::rc::Rc::new(Names::new(&trace.manifest)),
        }
    }

    fn role(&mut self, row: &Row) -> Role {
        let key = (row.pid, row.event);
        if let Some(&role) = self.roles.get(&key) {
            return role;
        }
        let name = self.names.event(row.pid, row.event);
        let role = match &*name {
            names::TRACE_HIGH => Role::TraceHigh,
            names::TRACE_LOW => Role::TraceLow,
            names::SPAN => Role::Span,
            names::PARENT => Role::Parent,
            names::ELSEWHERE => Role::Elsewhere,
            _ if !self.has_ids => Role::Point,
            name if name.ends_with(names::NEW) => Role::New,
            name => match name.strip_suffix(names::CLOSED) {
                Some(base) => self.new_of(row.pid, base).map_or(Role::Point, Role::Closed),
                None => Role::Point,
            },
        };
        self.roles.insert(key, role);
        role
    }

    /// Returns the ring of a row, which is taken out while the row is handled.
    fn take_ring(&mut self, ring: i32) -> Ring {
        self.rings.remove(&ring).unwrap_or_default()
    }

    fn user_row(&mut self, row: &Row) -> io::Result<()> {
        let mut ring = self.take_ring(row.ring);
        let at = ring.rows;
        ring.rows += 1;
        let handled = self.in_ring(&mut ring, row, at);
        self.rings.insert(row.ring, ring);
        handled
    }

    fn in_ring(&mut self, ring: &mut Ring, row: &Row, at: u64) -> io::Result<()> {
        let role = match row.kind {
            Some(Kind::Instant) => self.role(row),
            _ => Role::Point,
        };
        if let Some((new, place)) = ring.perhaps.take() {
            if role == Role::TraceHigh {
                self.begin_loose(ring, &new, place)?;
            } else {
                self.point(ring, &new, place)?;
            }
        }
        let is_identifier = matches!(
            role,
            Role::TraceHigh | Role::TraceLow | Role::Span | Role::Parent
        );
        if !is_identifier {
            self.close_begun(ring)?;
        }
        match row.kind {
            Some(Kind::Begin | Kind::BeginOrdered) => self.begin(ring, row, row.event, at),
            Some(Kind::End | Kind::EndOrdered) => self.end(ring, row)?,
            Some(Kind::Next) => {
                self.end(ring, row)?;
                self.begin(ring, row, row.payload as i32, at);
            }
            Some(Kind::Gap) => self.gap(ring, row)?,
            Some(Kind::Instant) => self.instant(ring, row, at, role)?,
            Some(Kind::Pair) => self.point(ring, row, at)?,
            Some(_) | None => {}
        }
        Ok(())
    }

    fn begin(&mut self, ring: &mut Ring, row: &Row, event: i32, at: u64) {
        if ring.stack.len() >= DEEPEST {
            ring.beyond += 1;
            self.counts.too_deep += 1;
            return;
        }
        let outer = ring.stack.last();
        let is_chosen = self.is_chosen(row.ring, at);
        let is_in_kept = outer.is_some_and(|outer| outer.is_kept);
        let ids = SpanIds {
            trace: outer.map_or_else(|| self.ids.trace(row.ring, at), |outer| outer.ids.trace),
            span: self.ids.span(row.ring, at),
            parent: outer.map_or(0, |outer| outer.ids.span),
            are_given: false,
        };
        ring.stack.push(Open {
            event,
            is_kept: is_chosen || is_in_kept,
            is_top: !is_in_kept,
            ..Open::new(row, at, ids)
        });
        ring.begun = Some(Begun::Innermost);
    }

    fn is_chosen(&self, ring: i32, at: u64) -> bool {
        (self.chosen.as_ref()).is_none_or(|chosen| chosen.contains(&(ring, at)))
    }

    /// Ends the innermost open span of that event; those inside it are unfinished.
    fn end(&mut self, ring: &mut Ring, row: &Row) -> io::Result<()> {
        ring.begun = None;
        if ring.over.take_if(|event| *event == row.event).is_some() {
            return Ok(());
        }
        if ring.beyond > 0 {
            ring.beyond -= 1;
            return Ok(());
        }
        let Some(at) = ring.stack.iter().rposition(|open| open.event == row.event) else {
            self.counts.without_begin += 1;
            return Ok(());
        };
        while ring.stack.len() > at + 1 {
            self.close_innermost(ring, row, false)?;
        }
        self.close_innermost(ring, row, true)
    }

    fn gap(&mut self, ring: &mut Ring, row: &Row) -> io::Result<()> {
        ring.begun = None;
        ring.beyond = 0;
        // The end that was to come may be among what was lost.
        ring.over = None;
        while !ring.stack.is_empty() {
            self.close_innermost(ring, row, false)?;
        }
        Ok(())
    }

    fn close_innermost(&mut self, ring: &mut Ring, row: &Row, finished: bool) -> io::Result<()> {
        match ring.stack.pop() {
            Some(open) => self.close(open, row.ring, row.unix_ns, finished),
            None => Ok(()),
        }
    }

    fn close(&mut self, open: Open, ring: i32, end_ns: i64, is_finished: bool) -> io::Result<()> {
        self.open_points -= open.points.len();
        if !open.is_kept {
            return Ok(());
        }
        self.counts.spans += 1;
        self.counts.unfinished += u64::from(!is_finished);
        self.counts.points += open.points.len() as u64;
        self.counts.points_dropped += u64::from(open.points_dropped);
        let mut ids = open.ids;
        // The derived parent is not in the file; one that the program gave may be elsewhere.
        if self.chosen.is_some() && open.is_top && !ids.are_given {
            ids.parent = 0;
        }
        let names = self.names.clone();
        let name = names.event(open.pid, open.event);
        let is_loose = ids.are_given && name.ends_with(names::NEW);
        let base = name.strip_suffix(names::NEW).filter(|_| is_loose);
        self.out.span(ClosedSpan {
            name: base.unwrap_or(&name),
            pid: open.pid,
            tid: open.tid,
            thread: names.thread(open.pid, open.tid),
            at: (ring, open.row),
            start_ns: open.start_ns,
            end_ns: end_ns.max(open.start_ns),
            is_finished,
            instant: None,
            ids,
            points: open.points,
            points_dropped: open.points_dropped,
        })
    }

    fn instant(&mut self, ring: &mut Ring, row: &Row, at: u64, role: Role) -> io::Result<()> {
        match role {
            Role::New => {
                ring.perhaps = Some((row.copied(), at));
                return Ok(());
            }
            Role::Closed(event) => {
                if self.end_loose(row, event, at)? {
                    return Ok(());
                }
            }
            Role::Elsewhere => {
                if self.ended_elsewhere(ring, row)? {
                    return Ok(());
                }
            }
            Role::TraceHigh | Role::TraceLow | Role::Span | Role::Parent => {
                if self.identify(ring, row.payload.cast_unsigned(), role) {
                    return Ok(());
                }
            }
            Role::Point => {}
        }
        self.point(ring, row, at)
    }

    /// Gives an identifier to the span that began last in the ring; false if there is none.
    fn identify(&mut self, ring: &mut Ring, number: u64, role: Role) -> bool {
        let open = match ring.begun {
            Some(Begun::Innermost) => ring.stack.last_mut(),
            Some(Begun::Loose(key)) => match self.loose.get_mut(&key) {
                Some(Half::Begun(_, open)) => Some(&mut **open),
                _ => None,
            },
            None => None,
        };
        let Some(Open { ids, .. }) = open else {
            return false;
        };
        let low = u128::from(u64::MAX);
        match role {
            Role::TraceHigh => ids.trace = u128::from(number) << 64 | ids.trace & low,
            Role::TraceLow => ids.trace = u128::from(number) | ids.trace & !low,
            Role::Parent => ids.parent = number,
            _ => ids.span = number,
        }
        ids.are_given = true;
        true
    }

    /// Adds a point to the innermost open span.
    fn point(&mut self, ring: &mut Ring, row: &Row, at: u64) -> io::Result<()> {
        ring.begun = None;
        let names = self.names.clone();
        let name = names.event(row.pid, row.event);
        match ring.stack.last_mut() {
            Some(open) if !open.is_kept || !O::HAS_POINTS => {}
            Some(open)
                if open.points.len() < MOST_POINTS && self.open_points < MOST_OPEN_POINTS =>
            {
                self.open_points += 1;
                open.points.push(Point {
                    ns: row.unix_ns,
                    name: name.into_owned(),
                    payload: row.payload,
                });
            }
            Some(open) => open.points_dropped = open.points_dropped.saturating_add(1),
            None if self.chosen.is_some() || !O::HAS_POINTS => {}
            None => self.point_alone(row, at)?,
        }
        Ok(())
    }

    /// Passes on a point that lies in no span.
    fn point_alone(&mut self, row: &Row, at: u64) -> io::Result<()> {
        self.counts.points_alone += 1;
        let ids = SpanIds {
            trace: self.ids.trace(row.ring, at),
            span: self.ids.span(row.ring, at),
            ..SpanIds::default()
        };
        self.out.span(ClosedSpan {
            name: &self.names.event(row.pid, row.event),
            pid: row.pid,
            tid: row.tid,
            thread: self.names.thread(row.pid, row.tid),
            at: (row.ring, at),
            start_ns: row.unix_ns,
            end_ns: row.unix_ns,
            is_finished: true,
            instant: Some(row.payload),
            ids,
            points: Vec::new(),
            points_dropped: 0,
        })
    }

    /// Closes what is open at the end of the trace, in the order of rings.
    fn close_all(&mut self) -> io::Result<()> {
        let mut numbers: Vec<i32> = self.rings.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let mut ring = self.take_ring(number);
            if let Some((new, at)) = ring.perhaps.take() {
                self.point(&mut ring, &new, at)?;
            }
            self.close_begun(&mut ring)?;
            while let Some(open) = ring.stack.pop() {
                self.close(open, number, self.last_ns, false)?;
            }
        }
        self.close_loose()
    }
}

impl Open {
    fn new(row: &Row, at: u64, ids: SpanIds) -> Self {
        Self {
            event: row.event,
            pid: row.pid,
            tid: row.tid,
            row: at,
            start_ns: row.unix_ns,
            ids,
            is_kept: true,
            is_top: true,
            points: Vec::new(),
            points_dropped: 0,
        }
    }
}

impl<O: Output> Sink for Spans<'_, O> {
    const ACTION: &'static str = O::ACTION;

    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row, _: &Names) -> io::Result<()> {
        if row.mode != 0 {
            self.counts.kernel_rows += 1;
            return Ok(());
        }
        self.last_ns = self.last_ns.max(row.unix_ns);
        self.user_row(row)
    }

    fn end(mut self) -> io::Result<()> {
        self.close_all()?;
        self.out.finish()
    }
}
