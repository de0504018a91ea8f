//! What is certain after a driver has said no, or nothing.

use tonic::{Code, Status};

use bindery_provisioner_sdk::{Failure, FailureEffect};

/// What is certain after a call to make a volume failed. Another node may do only where volumes have places, and one was chosen.
pub(crate) fn of_create(status: &Status, may_go_elsewhere: bool) -> Failure {
    let after = match status.code() {
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => FailureEffect::Unknown,
        Code::ResourceExhausted if may_go_elsewhere => FailureEffect::Reschedule,
        Code::InvalidArgument => FailureEffect::Infeasible,
        Code::AlreadyExists => FailureEffect::NameTaken,
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
        | Code::Unauthenticated => FailureEffect::Nothing,
    };
    Failure { error: said(status), effect: after }
}

/// What is certain after a call to remove a volume failed: it may be gone, and is asked for again.
pub(crate) fn of_delete(status: &Status) -> Failure {
    Failure { error: said(status), effect: FailureEffect::Unknown }
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
            (Code::Cancelled, "Canceled", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::Unknown, "Unknown", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::InvalidArgument, "InvalidArgument", FailureEffect::Infeasible, FailureEffect::Infeasible),
            (Code::DeadlineExceeded, "DeadlineExceeded", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::NotFound, "NotFound", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::AlreadyExists, "AlreadyExists", FailureEffect::NameTaken, FailureEffect::NameTaken),
            (Code::PermissionDenied, "PermissionDenied", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::ResourceExhausted, "ResourceExhausted", FailureEffect::Nothing, FailureEffect::Reschedule),
            (Code::FailedPrecondition, "FailedPrecondition", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Aborted, "Aborted", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::OutOfRange, "OutOfRange", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unimplemented, "Unimplemented", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Internal, "Internal", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unavailable, "Unavailable", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::DataLoss, "DataLoss", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unauthenticated, "Unauthenticated", FailureEffect::Nothing, FailureEffect::Nothing),
        ];
        for (code, word, here, elsewhere) in table {
            let status = Status::new(code, "no");
            let error = format!("rpc error: code = {word} desc = no");
            assert_eq!(of_create(&status, false), Failure { error: error.clone(), effect: here });
            assert_eq!(of_create(&status, true), Failure { error: error.clone(), effect: elsewhere });
            assert_eq!(of_delete(&status), Failure { error, effect: FailureEffect::Unknown });
        }
    }
}
