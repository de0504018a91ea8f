//! Durations as upstream's flags have them: `15s`, `1m30s`.

use std::time::Duration;

/// Reads a duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    // The only one that needs no unit.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| format!("{text:?} is no duration such as 15s or 2m"))?;
    Duration::try_from(duration).map_err(|_| format!("{text:?} is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_upstream_writes_them() {
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert!(parse("15").is_err() && parse("-1s").is_err() && parse("soon").is_err());
    }
}
