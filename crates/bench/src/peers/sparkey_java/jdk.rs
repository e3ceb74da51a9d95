//! The Java installations of this machine.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use cairn_vfs::{Fs, StdFs};

use crate::stores::java::Jdk;

/// Directory in which distributions install their JVMs.
const JVM_DIR: &str = "/usr/lib/jvm";

impl Jdk {
    /// Parses the version line of the jar: `sparkey 3.2.5, jmh 1.37, OpenJDK 64-Bit Server VM
    /// 17.0.15+6`. Also returns Sparkey's version. `None` for any other line.
    pub fn from_version(launcher: &Path, line: &str) -> Option<(Jdk, String)> {
        let mut parts = line.trim().splitn(3, ", ");
        let sparkey = parts.next()?.strip_prefix("sparkey ")?.to_owned();
        parts.next()?.strip_prefix("jmh ")?;
        let description = parts.next()?.to_owned();
        let number = description.rsplit(' ').next()?;
        // The version number of Java 8 is 1.8.
        let number = number.strip_prefix("1.").unwrap_or(number);
        let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
        let major: u32 = digits.parse().ok()?;
        let label = major.to_string();
        Some((Jdk { launcher: launcher.to_owned(), major, description, label }, sparkey))
    }

    /// Makes labels unique: the full version if several have the same major version, or the whole
    /// description if several have the same full version.
    pub(super) fn tell_apart(jdks: &mut [Jdk]) {
        let shared: Vec<bool> =
            jdks.iter().map(|jdk| jdks.iter().filter(|other| other.major == jdk.major).count() > 1).collect();
        let version = |jdk: &Jdk| jdk.description.rsplit(' ').next().unwrap_or_default().to_owned();
        let versions: Vec<String> = jdks.iter().map(version).collect();
        for (index, jdk) in jdks.iter_mut().enumerate().filter(|(index, _)| shared[*index]) {
            let same = versions.iter().filter(|other| **other == versions[index]).count() > 1;
            jdk.label = if same { jdk.description.clone() } else { versions[index].clone() };
        }
    }
}

/// Returns the `java` launchers in `JAVA_HOME`, `PATH` and the system's JVM directory, with links
/// resolved and duplicates removed.
pub fn installed() -> Vec<PathBuf> {
    let fs = StdFs::new();
    let mut candidates = Vec::new();
    if let Some(home) = env::var_os("JAVA_HOME") {
        candidates.push(PathBuf::from(home).join("bin/java"));
    }
    if let Some(path) = env::var_os("PATH") {
        candidates.extend(env::split_paths(&path).map(|dir| dir.join("java")));
    }
    if let Ok(homes) = fs.read_dir(Path::new(JVM_DIR)) {
        candidates.extend(homes.into_iter().map(|home| home.join("bin/java")));
    }
    let real: BTreeSet<PathBuf> = candidates.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: old and new version numbers are parsed, other lines are not.
    #[test]
    fn versions_are_read() {
        let read =
            |line: &str| Jdk::from_version(Path::new("/j"), line).map(|(jdk, sparkey)| (jdk.major, sparkey));
        let line = |vm: &str| format!("sparkey 3.2.5, jmh 1.37, OpenJDK 64-Bit Server VM {vm}\n");
        assert_eq!(read(&line("17.0.15+6-Debian-1")), Some((17, "3.2.5".to_owned())));
        assert_eq!(read(&line("25+36")), Some((25, "3.2.5".to_owned())));
        assert_eq!(read(&line("1.8.0_402-b06")), Some((8, "3.2.5".to_owned())));
        assert_eq!(read("usage: java"), None);
        assert_eq!(read(""), None);
    }

    /// Goal: no two JDKs share a contender's name. Method: one JDK with a unique major version, two
    /// with the same major version, two vendors with the same full version.
    #[test]
    fn labels_differ() {
        let descriptions = ["VM 8u1", "VM 17.0.15+6", "VM 17.0.9+1", "A VM 21.0.1", "B VM 21.0.1"];
        let mut jdks: Vec<Jdk> = descriptions
            .iter()
            .map(|vm| Jdk::from_version(Path::new("/j"), &format!("sparkey 3, jmh 1, {vm}")).unwrap().0)
            .collect();
        Jdk::tell_apart(&mut jdks);
        let labels: Vec<&str> = jdks.iter().map(|jdk| jdk.label.as_str()).collect();
        assert_eq!(labels, ["8", "17.0.15+6", "17.0.9+1", "A VM 21.0.1", "B VM 21.0.1"]);
    }
}
