//! What is certain after a driver has said no, or nothing.

use tonic::{Code, Status};

use bindery_provisioner_sdk::{After, Failure};

/// What is certain after a call to make a volume failed. Another node may do only where volumes have places, and one was chosen.
pub(crate) fn of_create(status: &Status, may_go_elsewhere: bool) -> Failure {
    let after = match status.code() {
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => After::Unknown,
        Code::ResourceExhausted if may_go_elsewhere => After::Elsewhere,
        Code::InvalidArgument => After::Never,
        Code::AlreadyExists => After::Taken,
        Code::ResourceExhausted
        | Code::Ok
        | Code::Unknown
        | Code::NotFound
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => After::Nothing,
    };
    Failure { error: said(status), after }
}

/// What is certain after a call to remove a volume failed: it may be gone, and is asked for again.
pub(crate) fn of_delete(status: &Status) -> Failure {
    Failure { error: said(status), after: After::Unknown }
}

/// A status in the words that users of drivers know.
pub(crate) fn said(status: &Status) -> String {
    format!("rpc error: code = {} desc = {}", code(status.code()), status.message())
}

/// A code by the name that it has in events and metrics.
pub fn code(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_what_is_certain() {
        let table = [
            (Code::Cancelled, "Canceled", After::Unknown, After::Unknown),
            (Code::Unknown, "Unknown", After::Nothing, After::Nothing),
            (Code::InvalidArgument, "InvalidArgument", After::Never, After::Never),
            (Code::DeadlineExceeded, "DeadlineExceeded", After::Unknown, After::Unknown),
            (Code::NotFound, "NotFound", After::Nothing, After::Nothing),
            (Code::AlreadyExists, "AlreadyExists", After::Taken, After::Taken),
            (Code::PermissionDenied, "PermissionDenied", After::Nothing, After::Nothing),
            (Code::ResourceExhausted, "ResourceExhausted", After::Nothing, After::Elsewhere),
            (Code::FailedPrecondition, "FailedPrecondition", After::Nothing, After::Nothing),
            (Code::Aborted, "Aborted", After::Unknown, After::Unknown),
            (Code::OutOfRange, "OutOfRange", After::Nothing, After::Nothing),
            (Code::Unimplemented, "Unimplemented", After::Nothing, After::Nothing),
            (Code::Internal, "Internal", After::Nothing, After::Nothing),
            (Code::Unavailable, "Unavailable", After::Unknown, After::Unknown),
            (Code::DataLoss, "DataLoss", After::Nothing, After::Nothing),
            (Code::Unauthenticated, "Unauthenticated", After::Nothing, After::Nothing),
        ];
        for (code, word, here, elsewhere) in table {
            let status = Status::new(code, "no");
            let error = format!("rpc error: code = {word} desc = no");
            assert_eq!(of_create(&status, false), Failure { error: error.clone(), after: here });
            assert_eq!(of_create(&status, true), Failure { error: error.clone(), after: elsewhere });
            assert_eq!(of_delete(&status), Failure { error, after: After::Unknown });
        }
    }
}
