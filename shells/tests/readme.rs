//! README agrees with the programs.

use shells::queue::{KINDS, LIMIT_PARAMETERS, Parameter};

fn list<'a>(parameters: impl IntoIterator<Item = &'a Parameter>) -> String {
    parameters.into_iter().map(|parameter| format!("`{parameter}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn readme_has_every_queue_and_its_arguments() {
    let rows = KINDS.iter().map(|kind| {
        let limit = if kind.has_limit { "yes" } else { "no" };
        format!("| `{kind}` | {} | {limit} | {} |", kind.summary, list(kind.parameters))
    });
    let head = ["| queue | | limit | other arguments |".to_owned(), "|---|---|---|---|".to_owned()];
    let table = head.into_iter().chain(rows).collect::<Vec<_>>().join("\n").replace("|  |", "| |");
    let readme = include_str!("../README.md");
    assert!(readme.contains(&table), "README.md needs this table of queues:\n\n{table}\n");
    assert!(readme.contains(&list(LIMIT_PARAMETERS)), "README.md needs: {}", list(LIMIT_PARAMETERS));
}
