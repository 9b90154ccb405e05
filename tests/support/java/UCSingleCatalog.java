package io.unitycatalog.spark;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.delta.catalog.DeltaCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Delta's own catalog over a server of Unity Catalog, under the name by which Delta knows it.
 *
 * <p>Since 4.3 Delta itself loads, creates and commits to the tables of such a server; the connector
 * of that name, which is in no registry, is what it sits in. This is no more of it than Delta asks
 * for: a catalog below Delta's that is of that package, has every schema, and drops tables.
 */
public final class UCSingleCatalog extends DeltaCatalog {
  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    setDelegateCatalog(new Below(name, options.get("uri"), options.get("auth.token")));
    super.initialize(name, options);
  }

  /** What Delta's catalog leaves to the one below it. */
  private static final class Below implements TableCatalog, SupportsNamespaces {
    private final String name;
    private final String uri;
    private final String token;

    Below(String name, String uri, String token) {
      this.name = name;
      this.uri = uri;
      this.token = token;
    }

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {}

    @Override
    public String name() {
      return name;
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
      return new Identifier[0];
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
      throw new NoSuchTableException(table);
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) {
      throw new UnsupportedOperationException("alterTable " + table);
    }

    @Override
    public boolean dropTable(Identifier table) {
      String path =
          String.format(
              "%s/api/2.1/unity-catalog/delta/v1/catalogs/%s/schemas/%s/tables/%s",
              uri, name, table.namespace()[0], table.name());
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(path))
              .header("Authorization", "Bearer " + token)
              .DELETE()
              .build();
      try {
        return HttpClient.newHttpClient()
                .send(request, HttpResponse.BodyHandlers.discarding())
                .statusCode()
            == 204;
      } catch (IOException | InterruptedException failed) {
        throw new IllegalStateException(failed);
      }
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
      throw new UnsupportedOperationException("renameTable " + from);
    }

    @Override
    public String[][] listNamespaces() {
      return new String[0][];
    }

    @Override
    public String[][] listNamespaces(String[] namespace) {
      return new String[0][];
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace) {
      return Map.of();
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> metadata) {
      throw new UnsupportedOperationException("createNamespace");
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
      throw new UnsupportedOperationException("alterNamespace");
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
      throw new UnsupportedOperationException("dropNamespace");
    }
  }
}
