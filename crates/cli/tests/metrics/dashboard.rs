//! The dashboard's queries.

use std::collections::BTreeSet;

use serde_json::Value;

/// What queries are made of besides metrics, labels and numbers.
const WORDS: &[&str] =
    &["by", "clamp_min", "histogram_quantile", "increase", "max", "min", "on", "rate", "sum"];

/// What a query of a panel reads.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pub(crate) text: String,
    /// The names of series, each with the labels that are asked for in its braces.
    pub(crate) series: Vec<(String, BTreeSet<String>)>,
    /// Labels by which series are grouped or matched.
    pub(crate) grouped_by: BTreeSet<String>,
}

/// The panels of a dashboard that show something.
pub(crate) fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().expect("panels");
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

/// All queries of a panel.
pub(crate) fn queries(panel: &Value) -> Vec<Query> {
    let targets = panel["targets"].as_array().expect("targets");
    targets.iter().map(|target| read(target["expr"].as_str().expect("a query"))).collect()
}

/// Takes a query apart. A whole parser would need three dozen crates; the few forms that the dashboard uses are told
/// apart by what stands before a bracket, and anything else is refused.
fn read(text: &str) -> Query {
    let mut query = Query { text: text.to_owned(), ..Query::default() };
    let mut open: Vec<char> = Vec::new();
    let mut last_word = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match c {
            '"' => 2 + rest[1..].find('"').unwrap_or_else(|| panic!("an open string: {text}")),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        match c {
            // The labels of `by` and `on` are told from arguments by their bracket.
            '(' if matches!(last_word.as_str(), "by" | "on") => open.push('<'),
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' => {
                let opened = open.pop();
                let fits =
                    matches!((opened, c), (Some('(' | '<'), ')') | (Some('['), ']') | (Some('{'), '}'));
                assert!(fits, "brackets that do not fit: {text}");
            }
            '$' => {
                let range = after.strip_prefix("__rate_interval");
                assert!(range.is_some() && open.last() == Some(&'['), "an unknown variable: {text}");
                rest = range.unwrap_or(after);
                continue;
            }
            c if c.is_ascii_alphabetic() => match open.last() {
                Some('{') => drop(query.series.last_mut().expect("a series").1.insert(token.to_owned())),
                Some('<') => drop(query.grouped_by.insert(token.to_owned())),
                _ if token.starts_with("downbeat_") || token.starts_with("nv_") => {
                    query.series.push((token.to_owned(), BTreeSet::new()));
                }
                _ => assert!(WORDS.contains(&token), "{token:?} is not known: {text}"),
            },
            _ => {}
        }
        if !c.is_whitespace() {
            last_word = token.to_owned();
        }
        rest = after;
    }
    assert!(open.is_empty(), "brackets that are not closed: {text}");
    query
}
