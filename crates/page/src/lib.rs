//! What every page that Downbeat draws shares: the shell and its style, headline tiles, figures, legends and tabs.
//!
//! A page is one file: it opens from disk, needs no network, prints, and follows the reader's colours. Every string
//! passes through `maud`, which escapes it.

#[cfg(test)]
mod tests;

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SORT: &str = include_str!("sort.js");

/// How many colours there are; see `page.css`.
pub const COLOURS: usize = 8;

/// The class that gives a series its colour and its dashes.
pub fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

/// A whole page. `foot` says how its numbers are meant.
pub fn page(title: &str, kicker: &str, lead: &Markup, body: &Markup, foot: &str) -> String {
    styled_page("", title, kicker, lead, body, foot)
}

/// A whole page with drawings of its own kind: `style` is CSS for these, beside what all pages share.
pub fn styled_page(
    style: &str,
    title: &str,
    kicker: &str,
    lead: &Markup,
    body: &Markup,
    foot: &str,
) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Downbeat" }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body {
                header {
                    p.kicker { (kicker) }
                    h1 { (title) }
                    p.lead { (lead) }
                }
                main { (body) }
                footer {
                    p { (foot) }
                }
                script { (PreEscaped(SORT)) }
            }
        }
    };
    markup.into_string()
}

/// How a headline number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Neither good nor bad.
    Neutral,
    /// A limit is kept.
    Good,
    /// A limit is not kept.
    Bad,
}

impl Mood {
    /// Good when the limit is kept. An unknown number is neither good nor bad.
    pub fn of_limit(value: f64, limit: f64) -> Self {
        match value.partial_cmp(&limit) {
            None => Self::Neutral,
            Some(std::cmp::Ordering::Greater) => Self::Bad,
            Some(_) => Self::Good,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Neutral => "tile",
            Self::Good => "tile good",
            Self::Bad => "tile bad",
        }
    }
}

/// One headline number.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What it is.
    pub what: &'static str,
    /// The number with its unit.
    pub value: String,
    /// What it is to be read with.
    pub note: String,
    /// How it is meant.
    pub mood: Mood,
}

impl Tile {
    /// A number that is neither good nor bad.
    pub fn neutral(what: &'static str, value: impl Into<String>, note: impl Into<String>) -> Tile {
        Tile { what, value: value.into(), note: note.into(), mood: Mood::Neutral }
    }
}

/// A row of headline numbers.
pub fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        dl.tiles {
            @for tile in tiles {
                div class=(tile.mood.class()) {
                    dt { (tile.what) }
                    dd.value { (tile.value) }
                    dd.note { (tile.note) }
                }
            }
        }
    }
}

/// A chart with the sentence that says what is to be seen, and the note that says how to read it.
pub fn figure(class: &str, title: &str, note: &str, body: &Markup) -> Markup {
    html! {
        figure class=(class) {
            figcaption {
                h3 { (title) }
                @if !note.is_empty() { p { (note) } }
            }
            (body)
        }
    }
}

/// What is to be known before the numbers are believed.
pub fn notes(notes: &[String]) -> Markup {
    html! { @for note in notes { p.caution { strong { "Note: " } (note) } } }
}

/// What is shown where a chart has no data.
pub fn nothing(why: &str) -> Markup {
    html! { p.nothing { (why) } }
}

/// Whether a legend shows lines, with their dashes, or filled areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// Lines, with their dashes.
    Line,
    /// Filled areas.
    Area,
}

/// A legend of (class, label). It stands above its chart, never on it.
pub fn legend(swatch: Swatch, entries: &[(String, String)]) -> Markup {
    html! {
        ul.legend {
            @for (class, label) in entries {
                li {
                    @match swatch {
                        Swatch::Line => {
                            svg class={ "swatch line " (class) } viewBox="0 0 26 10" aria-hidden="true" {
                                path d="M0 5H26" {}
                            }
                        },
                        Swatch::Area => { span class={ "swatch area " (class) } {} },
                    }
                    span.name title=(label) { (label) }
                }
            }
        }
    }
}

/// One of several panels at a time, chosen without a script; on paper they follow each other.
pub fn tabs(group: &str, panels: &[(String, Markup)]) -> Markup {
    if let [(_, only)] = panels {
        return only.clone();
    }
    html! {
        div.tabs {
            @for (i, (label, panel)) in panels.iter().enumerate() {
                input type="radio" name=(group) id={ (group) (i) } checked[i == 0];
                label for={ (group) (i) } { (label) }
                section.panel { (panel) }
            }
        }
    }
}
