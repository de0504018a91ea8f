//! Quantities, times and bytes: validation and canonical spelling.

use std::fmt::Write as _;

use bindery_model::Quantity;
use jiff::Timestamp;

const QUANTITY_FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// A quantity as Go's encoder spells it: `1024Mi` is `1Gi`, `0.5` is `500m`.
pub(super) fn quantity(text: String) -> Result<String, String> {
    if is_canonical(&text) {
        return Ok(text);
    }
    let parsed: Quantity = text.parse().map_err(|_| quantity_error(&text))?;
    let nanos = parsed.nanos();
    let suffix = text.trim_start_matches(['+', '-']).trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_small = nanos.abs() < 1024 * 1_000_000_000;
    Ok(match suffix.as_bytes() {
        [_, b'i'] if !is_small => binary(nanos),
        [b'e' | b'E', _, ..] => decimal(nanos, |power| if power == 0 { String::new() } else { format!("e{power}") }),
        _ => decimal(nanos, |power| SUFFIXES[((power + 9) / 3) as usize].to_owned()),
    })
}

/// Go distinguishes a bad suffix from a bad number, and its regular expression restricts the
/// letters of a suffix.
fn quantity_error(text: &str) -> String {
    let number = text.trim_start_matches(['+', '-']);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let letters = rest.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    let fits = rest.len() < number.len() && digits.bytes().all(|c| c.is_ascii_digit());
    if fits { "unable to parse quantity's suffix".to_owned() } else { QUANTITY_FORMAT_ERROR.to_owned() }
}

const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Whether the text is already canonical. Most are, so this is checked first.
fn is_canonical(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 15 || text.as_bytes()[0] == b'0' {
        return text == "0";
    }
    let Ok(number) = text[..digits].parse::<u64>() else { return false };
    match &text.as_bytes()[digits..] {
        [] | [b'm' | b'k' | b'M' | b'G'] => number % 1000 != 0,
        [b'K' | b'M' | b'G' | b'T', b'i'] => number % 1024 != 0 && digits < 6,
        _ => false,
    }
}

fn binary(nanos: i128) -> String {
    let mut number = (nanos.abs() + 999_999_999) / 1_000_000_000;
    let mut power = 0;
    while number % 1024 == 0 && power < 6 && number != 0 {
        number /= 1024;
        power += 1;
    }
    format!("{}{number}{}", if nanos < 0 { "-" } else { "" }, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
}

fn decimal(nanos: i128, suffix: impl Fn(i32) -> String) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let (mut number, mut power) = (nanos, -9);
    while number % 1000 == 0 && power < 18 {
        number /= 1000;
        power += 3;
    }
    format!("{number}{}", suffix(power))
}

/// Whether the text looks like `2026-01-02T15:04:05Z`, with so many digits in the fraction (0 or
/// 6).
fn is_utc(text: &str, fraction_digits: usize) -> bool {
    let form: &[u8] = if fraction_digits == 6 { b"0000-00-00T00:00:00.000000Z" } else { b"0000-00-00T00:00:00Z" };
    let fits = |(c, f): (u8, &u8)| if *f == b'0' { c.is_ascii_digit() } else { c == *f };
    text.len() == form.len() && text.bytes().zip(form).all(fits)
}

/// A time to the second, in UTC.
pub(super) fn time(text: String) -> Result<String, String> {
    const FORM: &str = "2006-01-02T15:04:05Z07:00";
    let parsed: Timestamp = match text.parse() {
        Ok(parsed) if is_rfc3339(&text) => parsed,
        _ => return Err(time_error(&text, FORM, false)),
    };
    Ok(if is_utc(&text, 0) { text } else { format!("{parsed:.0}") })
}

/// A time to the microsecond, in UTC. Exactly six fractional digits are required.
pub(super) fn micro_time(text: String) -> Result<String, String> {
    const FORM: &str = "2006-01-02T15:04:05.000000Z07:00";
    let fraction = text.get(19..).unwrap_or_default();
    let has_micros =
        fraction.strip_prefix('.').is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() == 6);
    let parsed: Timestamp = match text.parse() {
        Ok(parsed) if is_rfc3339(&text) && has_micros => parsed,
        _ => return Err(time_error(&text, FORM, true)),
    };
    Ok(if is_utc(&text, 6) { text } else { format!("{parsed:.6}") })
}

/// RFC 3339 is narrower than what jiff's parser accepts.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains('[')
}

/// Go's error names the first part of the layout that does not match, and the rest of the text.
fn time_error(text: &str, form: &str, micros: bool) -> String {
    const PIECES: [(&str, &str); 11] = [
        ("0000", "2006"),
        ("-", "-"),
        ("00", "01"),
        ("-", "-"),
        ("00", "02"),
        ("T", "T"),
        ("00", "15"),
        (":", ":"),
        ("00", "04"),
        (":", ":"),
        ("00", "05"),
    ];
    let mut rest = text;
    let mut message = format!("parsing time {text:?} as {form:?}: ");
    for (pattern, name) in PIECES {
        let fits = rest.len() >= pattern.len()
            && rest.bytes().zip(pattern.bytes()).all(|(c, p)| if p == b'0' { c.is_ascii_digit() } else { c == p });
        if !fits {
            let _ = write!(message, "cannot parse {rest:?} as {name:?}");
            return message;
        }
        rest = &rest[pattern.len()..];
    }
    let digits = rest.strip_prefix('.').map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match digits {
        _ if micros && digits.is_none_or(|digits| digits < 6) => {
            let _ = write!(message, "cannot parse {rest:?} as \".000000\"");
            return message;
        }
        Some(digits) if digits > 0 => rest = &rest[1 + if micros { 6 } else { digits }..],
        _ => {}
    }
    let piece = |from: usize, to: usize| text.get(from..to).and_then(|piece| piece.parse::<u32>().ok()).unwrap_or(0);
    let ranges = [("month", piece(5, 7), 1, 12), ("day", piece(8, 10), 1, 31), ("hour", piece(11, 13), 0, 23)];
    let more = [("minute", piece(14, 16), 0, 59), ("second", piece(17, 19), 0, 59)];
    for (what, number, least, most) in ranges.into_iter().chain(more) {
        if !(least..=most).contains(&number) {
            return format!("parsing time {text:?}: {what} out of range");
        }
    }
    let zone_fits =
        rest.starts_with('Z') || (rest.starts_with(['+', '-']) && rest.len() >= 6 && rest.as_bytes()[3] == b':');
    if !zone_fits {
        let _ = write!(message, "cannot parse {rest:?} as \"Z07:00\"");
    } else if rest.len() > 1 && rest.starts_with('Z') {
        return format!("parsing time {text:?}: extra text: {:?}", &rest[1..]);
    } else {
        return format!("parsing time {text:?}: day out of range");
    }
    message
}

/// The offset at which Go's decoder rejects base64 text. The `base64` crate cannot provide it: it
/// reports no offset for wrong padding, and Go skips line breaks and reports the start of an
/// incomplete quantum.
pub(super) fn base64_error(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, c)| !matches!(c, b'\r' | b'\n')).collect();
    for (quantum, chunk) in bytes.chunks(4).enumerate() {
        let is_last = (quantum + 1) * 4 >= bytes.len();
        for (position, (at, c)) in chunk.iter().enumerate() {
            let is_letter = c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/');
            let pads = *c == b'=' && is_last && position >= 2 && chunk[position..].iter().all(|(_, c)| *c == b'=');
            if !is_letter && !pads {
                return Some(*at);
            }
        }
        if chunk.len() < 4 {
            return Some(chunk[0].0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_spelled_as_in_go() {
        let pairs = [
            ("10Gi", "10Gi"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("0.5", "500m"),
            ("0.5Gi", "512Mi"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("100Ki", "100Ki"),
            ("0Gi", "0"),
            ("0", "0"),
            ("+5", "5"),
            ("05", "5"),
            ("0.001Ki", "1024m"),
            ("12000m", "12"),
            ("1000000Mi", "1000000Mi"),
        ];
        for (given, canonical) in pairs {
            assert_eq!(quantity(given.to_owned()).as_deref(), Ok(canonical), "{given}");
        }
        assert_eq!(quantity("x".to_owned()), Err(QUANTITY_FORMAT_ERROR.to_owned()));
        assert_eq!(quantity("1Kii".to_owned()), Err("unable to parse quantity's suffix".to_owned()));
    }

    #[test]
    fn times_are_converted_to_utc_seconds() {
        assert_eq!(time("2026-01-02T15:04:05Z".to_owned()).as_deref(), Ok("2026-01-02T15:04:05Z"));
        assert_eq!(time("2026-01-02T15:04:05.9+01:00".to_owned()).as_deref(), Ok("2026-01-02T14:04:05Z"));
        assert_eq!(
            micro_time("2026-01-02T15:04:05.123456+01:00".to_owned()).as_deref(),
            Ok("2026-01-02T14:04:05.123456Z")
        );
    }

    #[test]
    fn invalid_times_are_rejected_with_gos_message() {
        let form = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        let micro = "as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse";
        assert_eq!(time("x".to_owned()), Err(format!("parsing time \"x\" {form} \"x\" as \"2006\"")));
        let given = "2024-01-01T00:00:00Z";
        assert_eq!(micro_time(given.to_owned()), Err(format!("parsing time \"{given}\" {micro} \"Z\" as \".000000\"")));
        let given = "2024-01-01T00:00:00";
        assert_eq!(time(given.to_owned()), Err(format!("parsing time \"{given}\" {form} \"\" as \"Z07:00\"")));
    }

    #[test]
    fn invalid_base64_is_reported_at_gos_offset() {
        for (text, position) in
            [("!!", Some(0)), ("YQ", Some(0)), ("YQ==", None), ("YWJj", None), ("YWJjYQ=", Some(4)), ("YWJj!", Some(4))]
        {
            assert_eq!(base64_error(text), position, "{text}");
        }
    }
}
