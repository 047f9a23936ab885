//! The Python files of the plugin host, which are a part of the binary.

/// The program that runs a plugin.
pub(super) const HOST: &str = include_str!("host/host.py");
/// The program that reads the code of a plugin without running it.
pub(super) const SCAN: &str = include_str!("host/scan.py");
/// The program that unpacks wheels.
pub(super) const WHEELS: &str = include_str!("host/wheels.py");
/// The program that installs packages from an index.
pub(super) const FETCH: &str = include_str!("host/fetch.py");

/// The modules that existing plugins import, and those that these need, by their names.
const COMPAT: [(&str, &str); 15] = [
    ("__init__", include_str!("host/compat/__init__.py")),
    ("beside", include_str!("host/compat/beside.py")),
    ("clock", include_str!("host/compat/clock.py")),
    ("data_paths", include_str!("host/compat/data_paths.py")),
    ("errors", include_str!("host/compat/errors.py")),
    ("finder", include_str!("host/compat/finder.py")),
    ("keys", include_str!("host/compat/keys.py")),
    ("link", include_str!("host/compat/link.py")),
    ("loader", include_str!("host/compat/loader.py")),
    ("lookups", include_str!("host/compat/lookups.py")),
    ("model", include_str!("host/compat/model.py")),
    ("query", include_str!("host/compat/query.py")),
    ("services", include_str!("host/compat/services.py")),
    ("tables", include_str!("host/compat/tables.py")),
    ("tasks", include_str!("host/compat/tasks.py")),
];

/// Returns the modules that existing plugins import as arguments of a program: each after its name and a line break.
pub(super) fn compat_arguments() -> impl Iterator<Item = String> {
    COMPAT.iter().map(|(name, source)| format!("{name}\n{source}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The kernel accepts no longer argument.
    const ARGUMENT_BYTES_MAX: usize = 128 << 10;

    #[test]
    fn the_table_of_modules_is_complete() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/plugins/host/compat");
        let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        let files = files.filter(|it| it.extension().is_some_and(|it| it == "py"));
        let name = |it: &Path| it.file_stem().unwrap().to_string_lossy().into_owned();
        let on_disk: BTreeMap<_, _> = files.map(|it| (name(&it), fs::read_to_string(&it).unwrap())).collect();
        let embedded = COMPAT.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned()));
        assert_eq!(embedded.collect::<BTreeMap<_, _>>(), on_disk);
    }

    #[test]
    fn each_file_fits_into_an_argument() {
        let arguments = compat_arguments().chain([HOST, SCAN, WHEELS, FETCH].map(str::to_owned));
        for argument in arguments {
            assert!(argument.len() < ARGUMENT_BYTES_MAX, "{:?}", argument.lines().next());
        }
    }
}
