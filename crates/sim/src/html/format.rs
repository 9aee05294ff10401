//! Numbers as people read them: few digits, thousands separated, a dash for what is not known.

/// Shown in place of a number that does not exist.
const UNKNOWN: &str = "–";

/// A no-break space, so that a number and its unit stay on one line.
const NBSP: char = '\u{a0}';

/// A whole number with its thousands separated: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with more decimals the smaller it is: `12,345`, `12.3`, `0.12`.
pub fn number(x: f64) -> String {
    if !x.is_finite() {
        return UNKNOWN.to_owned();
    }
    let size = x.abs();
    if size >= 99.95 {
        let sign = if x < 0.0 { "−" } else { "" };
        // Saturates far beyond any rate or latency.
        format!("{sign}{}", count(size.round() as u64))
    } else if size >= 9.995 || x == 0.0 {
        trim(&format!("{x:.1}"))
    } else {
        // Two significant digits at least, as far as they can be told from zero.
        let digits = (1.0 - size.log10().floor()).clamp(2.0, 6.0) as usize;
        trim(&format!("{x:.digits$}"))
    }
}

/// A number in a column, where decimal points should line up as far as sizes allow.
pub fn cell(x: f64) -> String {
    match x.abs() {
        size if size.is_nan() || size >= 999.95 => number(x),
        size if size >= 9.995 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// A rate with its unit.
pub fn rps(x: f64) -> String {
    format!("{}{NBSP}rps", number(x))
}

/// A duration with its unit.
pub fn ms(x: f64) -> String {
    format!("{}{NBSP}ms", number(x))
}

/// A share as a percentage: small ones keep their digits, because a bad rate of 0.9 % and of 1.1 % differ.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return UNKNOWN.to_owned();
    }
    let hundred = share * 100.0;
    if hundred > 0.0 && hundred < 0.01 {
        return format!("<0.01{NBSP}%");
    }
    let digits = match hundred.abs() {
        x if x >= 9.995 => 1,
        x if x >= 0.0995 => 2,
        _ => 3,
    };
    format!("{}{NBSP}%", trim(&format!("{hundred:.digits$}")))
}

/// A bad rate in a column.
pub fn percent_cell(share: f64) -> String {
    if share.is_finite() { format!("{:.2}{NBSP}%", share * 100.0) } else { UNKNOWN.to_owned() }
}

/// A share as a whole percentage, for headlines.
pub fn percent_whole(share: f64) -> String {
    if share.is_finite() { format!("{:.0}{NBSP}%", share * 100.0) } else { UNKNOWN.to_owned() }
}

/// A tick of an axis: short, whatever the size.
pub fn tick(x: f64) -> String {
    match x.abs() {
        size if size >= 1e7 => format!("{}M", number(x / 1e6)),
        size if size >= 1e5 => format!("{}k", number(x / 1e3)),
        _ => number(x),
    }
}

/// `1 model`, `2 models`.
pub fn counted(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{}{NBSP}{noun}{plural}", count(n as u64))
}

/// Drops the zeros that end a decimal fraction, and the point when nothing follows it.
fn trim(number: &str) -> String {
    if !number.contains('.') {
        return number.to_owned();
    }
    let short = number.trim_end_matches('0').trim_end_matches('.');
    (if short == "-0" { "0" } else { short }).replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_the_digits_a_reader_needs() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(-1_234.0), "−1,234");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.000_25), "0.00025");
        assert_eq!(number(f64::NAN), "–");
        assert_eq!(tick(250_000.0), "250k");
    }

    #[test]
    fn bad_rates_around_the_limit_stay_apart() {
        assert_eq!(percent(0.0098), "0.98\u{a0}%");
        assert_eq!(percent(0.01), "1\u{a0}%");
        assert_eq!(percent(0.000_01), "<0.01\u{a0}%");
        assert_eq!(percent(0.0), "0\u{a0}%");
        assert_eq!(percent(1.0), "100\u{a0}%");
    }
}
