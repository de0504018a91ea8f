//! Reading objects: get and list.

use super::list_options::{self, Continue, Revision};
use super::{Answer, AnswerBody, Api, List, Request, Selection, key_of, key_prefix, show};
use crate::kinds;
use crate::status::Status;
use bytes::Bytes;

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
     the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the \
     provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk \
     was returned and now may show up in the list.";

impl Api {
    pub(super) fn get(&self, request: &Request) -> Result<Answer, Status> {
        let target = &request.target;
        let wanted = list_options::revision(&request.options.resource_version);
        let current = self.store.revision();
        match wanted.map_err(|error| Status::failure(500, "", error))? {
            Revision::At(wanted) if wanted > current => return Err(Status::too_large_revision(wanted, current)),
            Revision::At(_) | Revision::Any | Revision::Latest => {}
        }
        let key = key_of(&target.namespace, &target.name);
        let found = self.store.get(target.kind.bucket(), &key);
        let found = found.ok_or_else(|| Status::not_found(target.kind, &target.name))?;
        let body = AnswerBody::Object(show(target.kind, &found.bytes));
        Ok(Answer { code: 200, body, warnings: Vec::new(), revision: found.revision })
    }

    pub(super) fn list(&self, request: &Request) -> Result<Answer, Status> {
        let list = self.page(request)?;
        Ok(Answer { code: 200, body: AnswerBody::List(list), warnings: Vec::new(), revision: self.store.revision() })
    }

    fn page(&self, request: &Request) -> Result<List, Status> {
        let (target, options) = (&request.target, &request.options);
        let selection = Selection::parse(target.kind, &options.label_selector, &options.field_selector)?;
        list_options::validate_list(options)?;
        let (at, start) = self.page_start(request)?;
        let limit = match usize::try_from(options.limit) {
            Ok(limit) if limit > 0 && options.resource_version != "0" => limit,
            Ok(_) | Err(_) => usize::MAX,
        };
        let prefix = key_prefix(target);
        let from = format!("{prefix}{start}");
        let revision = at.unwrap_or(self.store.revision());
        let mut objects = match self.store.list(target.kind.bucket(), &prefix, &from, at) {
            Ok(objects) => objects,
            Err(_) if start.is_empty() => {
                return Err(Status::expired("The resourceVersion for the provided list is too old."));
            }
            Err(_) => {
                let mut status = Status::expired(TOO_OLD);
                let start = start.trim_end_matches('\0').to_owned();
                status.metadata.continue_token = Some(Continue { revision: None, start }.encode());
                return Err(status);
            }
        };
        let mut items: Vec<Bytes> = Vec::new();
        let mut last = String::new();
        let (mut continue_token, mut remaining) = (None, None);
        while let Some((key, object)) = objects.next() {
            if !selection.selects(&key, &object) {
                continue;
            }
            if items.len() == limit {
                continue_token =
                    Some(Continue { revision: Some(revision), start: last[prefix.len()..].to_owned() }.encode());
                remaining = selection.is_everything().then(|| 1 + objects.count() as u64);
                break;
            }
            items.push(show(target.kind, &object.bytes));
            last.clear();
            last.push_str(&key);
        }
        let default_class =
            (target.kind.bucket() == "storageclasses").then(|| kinds::storage_class::default_class(&self.store));
        Ok(List {
            kind: target.kind,
            revision,
            continue_token,
            remaining,
            items,
            default_class: default_class.flatten(),
        })
    }

    /// The revision to list (`None`: the latest), and the first key, without its prefix.
    fn page_start(&self, request: &Request) -> Result<(Option<u64>, String), Status> {
        let options = &request.options;
        let current = self.store.revision();
        if !options.continue_token.is_empty() {
            let next = Continue::decode(&options.continue_token)?;
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
            }
            return Ok((next.revision, next.start));
        }
        let wanted = list_options::revision(&options.resource_version);
        let wanted = wanted.map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
        let Revision::At(wanted) = wanted else { return Ok((None, String::new())) };
        if wanted > current {
            return Err(Status::too_large_revision(wanted, current));
        }
        let exact = match options.resource_version_match.as_str() {
            "Exact" => true,
            "NotOlderThan" => false,
            _ => options.limit > 0,
        };
        Ok((exact.then_some(wanted), String::new()))
    }
}
