//! Every shell prints its manual page, with all options that its help has.

use std::process::Command;

const PROGRAMS: [&str; 7] = [
    env!("CARGO_BIN_EXE_mm-delay"),
    env!("CARGO_BIN_EXE_mm-intermittent"),
    env!("CARGO_BIN_EXE_mm-link"),
    env!("CARGO_BIN_EXE_mm-loss"),
    env!("CARGO_BIN_EXE_mm-meter"),
    env!("CARGO_BIN_EXE_mm-net"),
    env!("CARGO_BIN_EXE_mm-onoff"),
];

fn output_of(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output().unwrap();
    assert!(output.status.success(), "{program} {argument}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_manual_page_has_the_options_of_the_help() {
    for program in PROGRAMS {
        let name = program.rsplit('/').next().unwrap();
        let page = output_of(program, "--man-page").replace("\\-", "-");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        let help = output_of(program, "--help");
        let options: Vec<_> = help
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .flat_map(str::split_whitespace)
            .filter(|word| word.starts_with("--"))
            .collect();
        assert!(options.len() >= 2, "{help}");
        for option in options {
            assert!(page.contains(option.trim_end_matches(',')), "{name}: {option} is not in\n{page}");
        }
    }
}
