#!/bin/sh
# Is there a Java that Spark can run on? Says nothing if so; otherwise says what to install.
#
# It looks where Spark's own launcher looks: at JAVA_HOME if that is set, else along the PATH.
# OS_RELEASE names the file that tells the distribution (the tests set it).
set -u

NEEDED=17

# Prints the major version of the given java, or nothing if it doesn't run.
major_of() {
    said=$("$1" -version 2>&1) || return 0
    case $said in
    *version\ \"*) ;;
    *) return 0 ;;
    esac
    version=${said#*version \"}
    version=${version%%\"*}
    version=${version#1.} # Java 8 called itself 1.8
    major=${version%%[!0-9]*}
    printf '%s' "$major"
}

# Prints the one command that installs a fitting Java here, or nothing if there is none we know.
remedy() {
    if [ "$(uname -s)" = Darwin ]; then
        command -v brew >/dev/null && printf 'brew install --cask temurin@17'
        return
    fi
    ID='' ID_LIKE='' VERSION_ID=''
    file=${OS_RELEASE:-/etc/os-release}
    # shellcheck disable=SC1090
    [ -r "$file" ] && . "$file"
    sudo=''
    [ "$(id -u)" = 0 ] || sudo='sudo '
    for name in $ID $ID_LIKE; do
        case $name in
        debian | ubuntu)
            package=openjdk-17-jre-headless
            # Debian 13 and its children dropped 17.
            [ "$ID" = debian ] && [ "${VERSION_ID%%.*}" -ge 13 ] 2>/dev/null &&
                package=openjdk-21-jre-headless
            printf '%sapt-get update && %sapt-get install -y %s' "$sudo" "$sudo" "$package"
            return
            ;;
        fedora | rhel | centos) printf '%sdnf install -y java-21-openjdk-headless' "$sudo" ; return ;;
        alpine) printf '%sapk add openjdk17-jre-headless bash' "$sudo" ; return ;;
        arch) printf '%spacman -S --noconfirm jre17-openjdk-headless' "$sudo" ; return ;;
        suse | opensuse*) printf '%szypper install -y java-17-openjdk-headless' "$sudo" ; return ;;
        esac
    done
}

refuse() {
    {
        printf 'Apache Spark needs Java %s or later, and %s.\n\n' "$NEEDED" "$1"
        command=$(remedy)
        if [ -n "$command" ]; then
            printf 'Install it with\n\n    %s\n\n' "$command"
        else
            printf 'Install it from\n\n    https://adoptium.net/temurin/releases/?version=17\n\n'
        fi
        printf 'and %srun the same command again. Nothing has been changed here.\n' "${2:-}"
    } >&2
    exit 1
}

if [ -n "${JAVA_HOME:-}" ]; then
    java=$JAVA_HOME/bin/java
    place="JAVA_HOME ($JAVA_HOME)"
    hint="with JAVA_HOME naming it (or unset), "
    [ -x "$java" ] || refuse "$place holds no bin/java" "$hint"
else
    java=$(command -v java) ||
        refuse "none was found: JAVA_HOME is not set, and there is no java on the PATH"
    place="$java"
    hint=""
fi
major=$(major_of "$java")
[ -n "$major" ] || refuse "$place does not run" "$hint"
[ "$major" -ge "$NEEDED" ] || refuse "$place is Java $major" "$hint"
