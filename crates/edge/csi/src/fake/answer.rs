//! The scripted answers of a fake driver.

use std::fmt;

use tonic::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Ok,
    Small,
    Zero,
    NoSource,
    Hang,
    Drop,
    Unsure,
    Twice,
    Code(Code),
}

/// The gRPC codes as the CSI specification spells them.
const CODES: [(&str, Code); 16] = [
    ("CANCELLED", Code::Cancelled),
    ("UNKNOWN", Code::Unknown),
    ("INVALID_ARGUMENT", Code::InvalidArgument),
    ("DEADLINE_EXCEEDED", Code::DeadlineExceeded),
    ("NOT_FOUND", Code::NotFound),
    ("ALREADY_EXISTS", Code::AlreadyExists),
    ("PERMISSION_DENIED", Code::PermissionDenied),
    ("RESOURCE_EXHAUSTED", Code::ResourceExhausted),
    ("FAILED_PRECONDITION", Code::FailedPrecondition),
    ("ABORTED", Code::Aborted),
    ("OUT_OF_RANGE", Code::OutOfRange),
    ("UNIMPLEMENTED", Code::Unimplemented),
    ("INTERNAL", Code::Internal),
    ("UNAVAILABLE", Code::Unavailable),
    ("DATA_LOSS", Code::DataLoss),
    ("UNAUTHENTICATED", Code::Unauthenticated),
];

pub(super) fn code_name(code: Code) -> &'static str {
    CODES.iter().find(|(_, known)| *known == code).map_or("OK", |(word, _)| word)
}

impl Answer {
    /// The n-th answer of a script, counted from one. The last one repeats.
    pub(super) fn nth(script: &str, n: usize) -> Answer {
        let words: Vec<&str> = script.split(',').collect();
        let word = words[n.min(words.len()).saturating_sub(1)];
        match word {
            "ok" => Answer::Ok,
            "small" => Answer::Small,
            "zero" => Answer::Zero,
            "nosource" => Answer::NoSource,
            "hang" => Answer::Hang,
            "drop" => Answer::Drop,
            "unsure" => Answer::Unsure,
            "twice" => Answer::Twice,
            code => {
                let known = CODES.iter().find(|(known, _)| *known == code);
                Answer::Code(known.unwrap_or_else(|| panic!("unknown answer in the script: {code}")).1)
            }
        }
    }

    /// The size that the response reports.
    pub(super) fn size(self, wanted: i64) -> i64 {
        match self {
            Answer::Small => wanted - 1,
            Answer::Zero => 0,
            Answer::Ok | Answer::NoSource | Answer::Hang | Answer::Drop | Answer::Unsure => wanted,
            Answer::Twice | Answer::Code(_) => wanted,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Ok => "ok",
            Answer::Small => "small",
            Answer::Zero => "zero",
            Answer::NoSource => "nosource",
            Answer::Hang => "hang",
            Answer::Drop => "drop",
            Answer::Unsure => "unsure",
            Answer::Twice => "twice",
            Answer::Code(code) => code_name(*code),
        })
    }
}
