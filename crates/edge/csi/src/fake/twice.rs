//! Responses that send the same message twice, as no correct driver does.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use tonic::Response;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

const MARK: &str = "x-twice";

/// Marks a response to be sent twice.
pub(super) fn marked<A>(mut answer: Response<A>) -> Response<A> {
    answer.metadata_mut().insert(MARK, tonic::metadata::MetadataValue::from_static("yes"));
    answer
}

/// A service that sends marked responses twice.
#[derive(Clone)]
pub(super) struct Twice<S>(pub S);

impl<S: NamedService> NamedService for Twice<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Twice<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answered = self.0.call(request);
        Box::pin(async move {
            let answer = answered.await?;
            if !answer.headers().contains_key(MARK) {
                return Ok(answer);
            }
            let again = |message: Bytes| Bytes::from([message.as_ref(), message.as_ref()].concat());
            Ok(answer.map(|body| Body::new(body.map_frame(move |frame| frame.map_data(again)))))
        })
    }
}
