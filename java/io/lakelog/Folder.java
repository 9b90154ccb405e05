package io.lakelog;

import java.net.URI;
import org.apache.hadoop.fs.Path;

/**
 * The paths of a folder's entries.
 *
 * <p>A Path from text is quoted, put together and parsed. Of thousands of entries that is most of a
 * listing's work here, and for all names but odd ones the folder's part can be kept.
 */
final class Folder {
  private final String text;
  private final String uri;

  /** Of the folder's path, with the slash at its end. */
  Folder(String text) {
    this.text = text;
    String entry = new Path(text + "x").toUri().toString();
    uri = entry.substring(0, entry.length() - 1);
  }

  Path of(String name) {
    return needsNoQuotes(name) ? new Path(URI.create(uri + name)) : new Path(text + name);
  }

  private static boolean needsNoQuotes(String name) {
    for (int at = 0; at < name.length(); at++) {
      char each = name.charAt(at);
      boolean plain =
          each >= 'a' && each <= 'z'
              || each >= '0' && each <= '9'
              || each >= 'A' && each <= 'Z'
              || each == '.'
              || each == '-'
              || each == '_';
      if (!plain) {
        return false;
      }
    }
    return true;
  }
}
