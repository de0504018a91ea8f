//! Tests of pages: versions, groups, limits, and records that cannot be read.

use super::*;
use bindery_model::Attempt;

fn body(instance: &str, size: usize) -> Value {
    json!({
        "claim": {"namespace": "ns", "name": "c"},
        "attempt": {"instance": instance, "number": 1},
        "request": {"volume": "x".repeat(size)},
    })
}

fn page(name: &str, version: u64, data: &[(&str, &Value)]) -> Value {
    let data: Map<String, Value> =
        data.iter().map(|(name, body)| ((*name).to_owned(), body.to_string().into())).collect();
    json!({"metadata": {"name": name, "uid": "u", "resourceVersion": version.to_string()}, "data": data})
}

/// The changes as text: `+name@version`, `-name@version`.
fn shown(changes: &[WatchedChange]) -> Vec<String> {
    let show = |change: &WatchedChange| match change {
        WatchedChange::Changed(object) => format!("+{}@{}", object.meta().name, object.meta().version),
        WatchedChange::Deleted(key, version) => format!("-{}@{version}", key.name),
        WatchedChange::Listed(..) | WatchedChange::Bookmark(..) => panic!("{change:?}"),
    };
    changes.iter().map(show).collect()
}

fn begin(number: u64) -> RecordEdit {
    RecordEdit::Begin(Attempt { instance: "b".into(), number })
}

#[test]
fn every_change_has_a_version_of_its_own() {
    let mut pages = Pages::new("set".into());
    let (one, two) = (body("a", 1), body("a", 2));
    assert_eq!(shown(&pages.seen(&page("set-0", 5, &[("r1", &one), ("r2", &one)]))), ["+r1@1", "+r2@2"]);
    assert_eq!(shown(&pages.seen(&page("set-0", 7, &[("r1", &one), ("r2", &two)]))), ["+r2@3"]);
    assert!(pages.seen(&page("set-0", 6, &[])).is_empty(), "it is older than what is known");
    assert_eq!(pages.record(&"r1".into()).map(|record| record.meta.version), Some(1));
    assert_eq!(shown(&pages.seen(&page("set-0", 8, &[("r2", &two)]))), ["-r1@4"]);
    assert!(pages.listed(7, &[]).is_empty(), "a list older than the page removes nothing");
    assert_eq!(shown(&pages.listed(9, &[])), ["-r2@5"]);
}

#[test]
fn changes_of_one_page_are_one_write_and_each_record_is_compared() {
    let mut pages = Pages::new("set".into());
    pages.seen(&page("set-0", 5, &[("r1", &body("a", 1)), ("r2", &body("a", 1))]));
    let changes = [
        Change::Create("r3".into(), body("a", 3)),
        Change::Write("r1".into(), 1, begin(2)),
        Change::Write("r2".into(), 2, RecordEdit::Remove),
        Change::Write("r2".into(), 4, begin(2)),
        Change::Write("r9".into(), 5, begin(2)),
        Change::Create("r1".into(), body("b", 1)),
        Change::Read("r1".into()),
    ];
    let changes: Vec<(usize, Change)> = changes.into_iter().enumerate().collect();
    let plan = pages.plan(&changes);
    let [write] = &plan.writes[..] else { panic!("one write: {plan:?}") };
    assert_eq!(write.changes.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(write.body["metadata"], json!({"uid": "u", "resourceVersion": "5"}), "it is conditional");
    assert_eq!(write.body["data"]["r2"], Value::Null);
    assert!(write.body["data"]["r1"].as_str().is_some_and(|text| text.contains(r#""outcomeUnknown":true"#)));
    let conflict = |at: usize| {
        let answer = plan.answers.iter().find(|(found, _)| *found == at).map(|(_, answer)| answer);
        format!("{answer:?}")
    };
    assert!(conflict(3).contains("Conflict") && conflict(4).contains("NotFound"));
    assert!(conflict(5).contains("Conflict") && conflict(6).contains("Read"));
}

#[test]
fn full_pages_reject_new_records_and_accept_changes_of_others() {
    let mut pages = Pages::new("set".into());
    let half = body("a", PAGE_BYTES_MAX / 2);
    let creates: Vec<(usize, Change)> =
        (0..=PAGES_MAX).map(|at| (at, Change::Create(format!("r{at}").into(), half.clone()))).collect();
    let plan = pages.plan(&creates);
    assert_eq!(plan.writes.len(), PAGES_MAX, "two of them do not fit in one page");
    assert!(plan.writes.iter().all(|write| write.is_new && write.body["metadata"]["labels"][LABEL] == "set"));
    let [(at, Answer::Rejected(RequestError::Error(0, error)))] = &plan.answers[..] else {
        panic!("{:?}", plan.answers)
    };
    assert_eq!(*at, PAGES_MAX);
    assert!(error.contains("no space"), "{error}");
    for (number, write) in plan.writes.iter().enumerate() {
        pages.seen(&page(&write.page, 5 + number as u64, &[(&format!("r{number}"), &half)]));
    }
    let changes = [Change::Create("more".into(), half), Change::Write("r3".into(), 4, RecordEdit::Remove)];
    let plan = pages.plan(&changes.into_iter().enumerate().collect::<Vec<_>>());
    assert_eq!((plan.answers.len(), plan.writes.len()), (1, 1), "recorded claims go on");
}

#[test]
fn unreadable_records_have_a_field_error() {
    let mut pages = Pages::new("set".into());
    let mut broken = page("set-0", 5, &[]);
    broken["data"] = json!({"r1": "not JSON", "r2": "[]"});
    pages.seen(&broken);
    for name in ["r1", "r2"] {
        let record = pages.record(&name.into()).expect("it is known");
        assert!(record.field_error.is_some() && record.meta.name == name, "{record:?}");
    }
    assert_eq!(label_value(&"x".repeat(80)).len(), 63);
}
