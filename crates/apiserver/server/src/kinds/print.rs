//! Formatting of table cells.

use super::PrintContext;
use crate::value::{at, text, texts};
use jiff::Timestamp;
use serde_json::Value;

/// The object's name.
pub fn name(object: &Value) -> Value {
    text(object, &["metadata", "name"]).into()
}

/// How long ago the object was created.
pub fn age(object: &Value, context: &PrintContext<'_>) -> Value {
    since(text(object, &["metadata", "creationTimestamp"]), context.now).into()
}

/// The cells of a table with name and age only.
pub fn name_and_age(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![name(object), age(object, context)]
}

/// How long ago a time was, in readable form.
pub fn since(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => duration(now.as_second() - time.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A number of seconds in readable form, with less precision for longer durations.
pub fn duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let with = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => with(days, "d", hours % 24, "h"),
        () if days < 2 * 365 => format!("{days}d"),
        () if years < 8 => with(years, "y", days % 365, "d"),
        () => format!("{years}y"),
    }
}

/// Abbreviated access modes, in upstream's order.
pub fn access_modes(object: &Value, path: &[&str]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes: Vec<&str> = texts(object, path).collect();
    let short: Vec<&str> = SHORT.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

/// The text at a path, or a default.
pub fn text_or<'a>(object: &'a Value, path: &[&str], none: &'a str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or(none)
}

/// The phase, or `Terminating` if the object is being deleted.
pub fn phase(object: &Value) -> &str {
    if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else {
        text(object, &["status", "phase"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_durations_are_less_precise() {
        let minute = 60;
        let (hour, day) = (60 * minute, 24 * 60 * minute);
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (5 * minute + 3, "5m3s"),
            (10 * minute + 3, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (8 * hour + 59 * minute, "8h"),
            (47 * hour, "47h"),
            (3 * day + 2 * hour, "3d2h"),
            (8 * day + 2 * hour, "8d"),
            (729 * day, "729d"),
            (800 * day, "2y70d"),
            (9 * 365 * day, "9y"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
