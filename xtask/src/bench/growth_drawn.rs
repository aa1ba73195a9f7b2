//! A drawing for the book: time and memory against events and against threads.

use std::fmt::Write as _;

/// Figures of one report.
pub struct Point {
    pub events: u64,
    pub threads: u64,
    pub seconds: f64,
    pub peak_mib: f64,
}

/// Number of threads where events grow, and of events where threads grow.
const THREADS: u64 = 16;
const EVENTS: u64 = 10_000_000;

/// Size of a panel, pixels.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 220.0;

/// A panel with both axes logarithmic.
struct Panel<'a> {
    title: &'a str,
    /// The points: horizontal and vertical values.
    points: Vec<(f64, f64)>,
    across: (i32, i32),
    up: (i32, i32),
    across_label: &'a str,
    up_label: &'a str,
}

/// The drawing as SVG, with four panels.
pub fn svg(points: &[Point]) -> String {
    let by = |of: fn(&Point) -> bool, x: fn(&Point) -> u64, y: fn(&Point) -> f64| {
        let mut found: Vec<(f64, f64)> = (points.iter().filter(|p| of(p)))
            .map(|p| (x(p) as f64, y(p)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.dedup_by_key(|p| p.0);
        found
    };
    let panel = |title, points, across, up, across_label, up_label| Panel {
        title,
        points,
        across,
        up,
        across_label,
        up_label,
    };
    let of_events = |p: &Point| p.threads == THREADS;
    let of_threads = |p: &Point| p.events == EVENTS;
    let panels = [
        panel(
            "16 threads",
            by(of_events, |p| p.events, |p| p.seconds),
            (6, 9),
            (-1, 2),
            "events",
            "s",
        ),
        panel(
            "16 threads",
            by(of_events, |p| p.events, |p| p.peak_mib),
            (6, 9),
            (0, 3),
            "events",
            "MiB",
        ),
        panel(
            "10^7 events",
            by(of_threads, |p| p.threads, |p| p.seconds),
            (0, 4),
            (-1, 2),
            "threads",
            "s",
        ),
        panel(
            "10^7 events",
            by(of_threads, |p| p.threads, |p| p.peak_mib),
            (0, 4),
            (0, 3),
            "threads",
            "MiB",
        ),
    ];
    let (width, height) = (2.0 * (WIDTH + 100.0), 2.0 * (HEIGHT + 70.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\"><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = (
            (i % 2) as f64 * (WIDTH + 100.0) + 60.0,
            (i / 2) as f64 * (HEIGHT + 70.0) + 30.0,
        );
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

impl Panel<'_> {
    fn x(&self, value: f64) -> f64 {
        let (lo, hi) = self.across;
        (value.log10() - f64::from(lo)) / f64::from(hi - lo) * WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        let (lo, hi) = self.up;
        HEIGHT - (value.log10() - f64::from(lo)) / f64::from(hi - lo) * HEIGHT
    }

    fn draw(&self, svg: &mut String) {
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"-10\" font-weight=\"bold\">{}, {}</text>",
            self.up_label, self.title
        );
        for decade in self.across.0..=self.across.1 {
            let x = self.x(10_f64.powi(decade));
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} 0V{HEIGHT}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">10<tspan dy=\"-4\" font-size=\"9\">{decade}</tspan></text>",
                HEIGHT + 16.0
            );
        }
        for decade in self.up.0..=self.up.1 {
            let y = self.y(10_f64.powi(decade));
            let value = 10_f64.powi(decade);
            let _ = writeln!(
                svg,
                "<path d=\"M0 {y:.1}H{WIDTH}\" stroke=\"#ddd\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                y + 4.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            WIDTH / 2.0,
            HEIGHT + 34.0,
            self.across_label
        );
        let at: Vec<String> = (self.points.iter())
            .map(|&(x, y)| format!("{:.1} {:.1}", self.x(x), self.y(y)))
            .collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"#1f5fbf\" stroke-width=\"1.5\"/>",
            at.join("L")
        );
        for &(x, y) in &self.points {
            let shown = if y < 10.0 {
                format!("{y:.2}")
            } else {
                format!("{y:.0}")
            };
            let (x, y) = (self.x(x), self.y(y));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"#1f5fbf\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{shown}</text>",
                y - 8.0
            );
        }
    }
}
