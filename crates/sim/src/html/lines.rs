//! Lines over two axes: shapes in a stretched SVG, words around it.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::page::{Swatch, legend};
use super::scale::{Axis, SIZE};

/// Neighbouring points nearer than this in both directions are drawn as one: a distribution may have thousands.
const MOVE_MIN: f64 = 2.0;

/// One line.
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its colour and dashes.
    pub class: String,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// One point of a line.
pub struct Point {
    /// Its place on the x axis.
    pub x: f64,
    /// Its place on the y axis; a point that is not a number is left out.
    pub y: f64,
    /// What the pointer shows there; a point without a hint gets no dot.
    pub hint: Option<String>,
}

/// A line across the whole chart that others are read against.
pub enum Mark {
    /// At a value of the y axis.
    Across(f64, String),
    /// At a value of the x axis.
    Up(f64, String),
}

/// A chart of lines.
pub struct LineChart {
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// What they are read against.
    pub marks: Vec<Mark>,
    /// The chart in one sentence, for those who cannot see it.
    pub summary: String,
}

impl LineChart {
    /// The legend and the chart.
    pub fn draw(&self) -> Markup {
        let entries: Vec<_> = self.series.iter().map(|s| (s.class.clone(), s.label.clone())).collect();
        html! {
            (legend(Swatch::Line, &entries))
            (frame(&self.x, &self.y, &self.plot()))
        }
    }

    fn plot(&self) -> Markup {
        html! {
            (stretched(&self.summary, &html! {
                (grid(&self.x, &self.y))
                @for mark in &self.marks { (self.mark_line(mark)) }
                @for series in &self.series { (self.line(series)) }
            }))
            @for mark in &self.marks { (self.mark_label(mark)) }
        }
    }

    fn line(&self, series: &Series) -> Markup {
        html! {
            g class={ "series " (series.class) } {
                path.line d=(self.path(&series.points)) {}
                @for point in series.points.iter().filter(|p| is_drawable(p)) {
                    @if let Some(hint) = &point.hint {
                        // A line of no length with round ends stays a circle however the picture is stretched.
                        path.dot d={ "M" (self.place(point)) "h0" } { title { (hint) } }
                    }
                }
            }
        }
    }

    /// The points joined by straight lines.
    fn path(&self, points: &[Point]) -> String {
        let mut path = String::new();
        let mut last: Option<(f64, f64)> = None;
        let drawable: Vec<&Point> = points.iter().filter(|p| is_drawable(p)).collect();
        for (i, point) in drawable.iter().enumerate() {
            let (x, y) = (self.x.at(point.x), self.y.at(point.y));
            let near = last.is_some_and(|(lx, ly)| (x - lx).abs() < MOVE_MIN && (y - ly).abs() < MOVE_MIN);
            if near && i + 1 < drawable.len() {
                continue;
            }
            let command = if last.is_none() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{}", self.place(point));
            last = Some((x, y));
        }
        path
    }

    fn place(&self, point: &Point) -> String {
        format!("{:.1} {:.1}", self.x.at(point.x), SIZE - self.y.at(point.y))
    }

    fn mark_line(&self, mark: &Mark) -> Markup {
        let path = match mark {
            Mark::Across(value, _) => format!("M0 {:.1}H{SIZE}", SIZE - self.y.at(*value)),
            Mark::Up(value, _) => format!("M{:.1} 0V{SIZE}", self.x.at(*value)),
        };
        html! { @if self.shows(mark) { path.mark d=(path) {} } }
    }

    fn mark_label(&self, mark: &Mark) -> Markup {
        html! {
            @if self.shows(mark) {
                @match mark {
                    Mark::Across(value, label) => {
                        span.across style={ "bottom:" (percent(self.y.percent_at(*value))) } { (label) }
                    },
                    Mark::Up(value, label) => {
                        span class=(up_class(self.x.percent_at(*value)))
                            style={ "left:" (percent(self.x.percent_at(*value))) } { (label) }
                    },
                }
            }
        }
    }

    fn shows(&self, mark: &Mark) -> bool {
        match mark {
            Mark::Across(value, _) => self.y.holds(*value),
            Mark::Up(value, _) => self.x.holds(*value),
        }
    }
}

/// A picture that fills its place on the page, whatever its shape.
pub fn stretched(summary: &str, shapes: &Markup) -> Markup {
    html! {
        svg.stretch viewBox={ "0 0 " (SIZE) " " (SIZE) } preserveAspectRatio="none" role="img" aria-label=(summary) {
            (shapes)
        }
    }
}

/// The axes, their ticks and titles around a plot.
pub fn frame(x: &Axis, y: &Axis, plot: &Markup) -> Markup {
    html! {
        div.frame {
            div.ytitle { (y.title) }
            div.yticks aria-hidden="true" {
                @for (value, label) in y.ticks() {
                    span style={ "bottom:" (percent(y.percent_at(value))) } { (label) }
                }
            }
            div.plot { (plot) }
            (x_axis(x))
        }
    }
}

/// The ticks and the title under a plot.
pub fn x_axis(x: &Axis) -> Markup {
    html! {
        div.xticks aria-hidden="true" {
            @for (value, label) in x.ticks() {
                span style={ "left:" (percent(x.percent_at(value))) } { (label) }
            }
        }
        div.xtitle { (x.title) }
    }
}

/// A hair line at every tick.
pub fn grid(x: &Axis, y: &Axis) -> Markup {
    let mut path = String::new();
    for (value, _) in x.ticks() {
        let _ = write!(path, "M{:.1} 0V{SIZE}", x.at(value));
    }
    for (value, _) in y.ticks() {
        let _ = write!(path, "M0 {:.1}H{SIZE}", SIZE - y.at(value));
    }
    html! { path.grid d=(path) {} }
}

/// A length in CSS.
pub fn percent(x: f64) -> String {
    format!("{x:.2}%")
}

/// A label near an edge grows away from that edge.
pub fn up_class(percent: f64) -> &'static str {
    match percent {
        p if p < 15.0 => "up from-left",
        p if p > 85.0 => "up from-right",
        _ => "up",
    }
}

fn is_drawable(point: &Point) -> bool {
    point.x.is_finite() && point.y.is_finite()
}
