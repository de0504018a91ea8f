//! The error message of Go's JSON scanner for malformed JSON. Only used once parsing has failed.

/// Deeper than anything that is decoded, and shallow enough not to overflow the stack.
const DEPTH_MAX: usize = 256;

const END: &str = "unexpected end of JSON input";

/// The first syntax error in the text.
pub fn syntax_error(text: &[u8]) -> String {
    let mut scanner = Scanner { text, at: 0 };
    let outcome = scanner.value(0).and_then(|()| scanner.end());
    outcome.err().unwrap_or_else(|| "exceeded max depth".to_owned())
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

type Outcome = Result<(), String>;

impl Scanner<'_> {
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is not whitespace, without consuming it.
    fn peek(&mut self) -> Result<u8, String> {
        self.space();
        self.byte()
    }

    fn byte(&self) -> Result<u8, String> {
        self.text.get(self.at).copied().ok_or_else(|| END.to_owned())
    }

    fn unexpected<T>(&self, context: &str) -> Result<T, String> {
        let shown = match char::from(self.byte()?) {
            '\'' => "'\\''".to_owned(),
            '"' => "'\"'".to_owned(),
            c => format!("'{}'", go_char(c)),
        };
        Err(format!("invalid character {shown} {context}"))
    }

    fn end(&mut self) -> Outcome {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { self.unexpected("after top-level value") }
    }

    fn value(&mut self, depth: usize) -> Outcome {
        if depth > DEPTH_MAX {
            return self.unexpected("exceeded max depth");
        }
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.unexpected("looking for beginning of value"),
        }
    }

    fn object(&mut self, depth: usize) -> Outcome {
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek()? != b'"' {
                return self.unexpected("looking for beginning of object key string");
            }
            self.string()?;
            if self.peek()? != b':' {
                return self.unexpected("after object key");
            }
            self.at += 1;
            self.value(depth + 1)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.unexpected("after object key:value pair"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Outcome {
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.unexpected("after array element"),
            }
        }
    }

    fn string(&mut self) -> Outcome {
        self.at += 1;
        loop {
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.escape()?;
                }
                0..=0x1f => return self.unexpected("in string literal"),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Outcome {
        match self.byte()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte()?.is_ascii_hexdigit() {
                        return self.unexpected("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
            }
            _ => return self.unexpected("in string escape code"),
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Outcome {
        for expected in word.bytes() {
            if self.byte()? != expected {
                let expected = char::from(expected);
                return self.unexpected(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Outcome {
        if !self.byte()?.is_ascii_digit() {
            return self.unexpected(context);
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Outcome {
        if self.byte()? == b'-' {
            self.at += 1;
        }
        if self.byte()? == b'0' {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte()?, b'+' | b'-') {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

/// A character as in Go's quoted strings.
pub(super) fn go_char(c: char) -> String {
    match c {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0'..='\u{1f}' | '\u{7f}' => format!("\\x{:02x}", u32::from(c)),
        '\u{80}'..='\u{a0}' | '\u{ad}' => format!("\\u{:04x}", u32::from(c)),
        _ => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn syntax_errors_have_gos_wording() {
        let pairs = [
            ("", "unexpected end of JSON input"),
            (r#"{"a":{}"#, "unexpected end of JSON input"),
            (r#"{"a":{}}x"#, "invalid character 'x' after top-level value"),
            (r#"{"a":{,}}"#, "invalid character ',' looking for beginning of object key string"),
            (r#"{"a":tru}"#, "invalid character '}' in literal true (expecting 'e')"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (r#"{"a":1 "b":2}"#, "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("<a>", "invalid character '<' looking for beginning of value"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
        ];
        for (text, expected) in pairs {
            assert_eq!(syntax_error(text.as_bytes()), expected, "{text}");
        }
    }
}
