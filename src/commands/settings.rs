//! `headwater config`: prints every setting in force.

use std::process::ExitCode;

use config::{ConfigValue, by_table};

use crate::terminal::say;

/// Prints the values as a configuration file, with the default and the origin of each as a comment.
pub(super) fn print(values: &[ConfigValue]) -> ExitCode {
    say(&text(values));
    ExitCode::SUCCESS
}

fn text(values: &[ConfigValue]) -> String {
    let mut text = String::new();
    for (table, values) in by_table(values.iter().map(|it| (it.key.clone(), it))) {
        if !table.is_empty() {
            text += &format!("\n[{table}]\n");
        }
        for (name, value) in values {
            text += &line(&name, value);
        }
    }
    text
}

fn line(name: &str, value: &ConfigValue) -> String {
    let default = match &value.default {
        Some(default) if value.value.as_ref() != Some(default) => format!("; default: {default}"),
        _ => String::new(),
    };
    match &value.value {
        Some(set) => format!("{name} = {set}  # {}{default}\n", value.origin),
        None => format!("# {name} is not set\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_a_file_with_their_origin_and_their_default() {
        let value = |key: &str, value: Option<&str>, origin: &str| ConfigValue {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            default: Some("6".to_owned()),
            origin: origin.to_owned(),
        };
        let values = [
            value("engine.stall_timeout", Some("5"), "option --set"),
            value("engine.start_timeout", Some("6"), "default"),
            value("user_agent", None, "default"),
        ];
        assert_eq!(
            text(&values),
            "# user_agent is not set\n\n[engine]\nstall_timeout = 5  # option --set; default: 6\nstart_timeout = 6  # default\n"
        );
    }
}
