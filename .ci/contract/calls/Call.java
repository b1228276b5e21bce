import org.openapitools.client.ApiClient;
import org.openapitools.client.api.AuthenticationApi;

/** Calls a server with the Java client that OpenAPI Generator generates from openapi.yaml. */
public class Call {
  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("CONTRACT_URL"));
    client.setBearerToken(System.getenv("CONTRACT_TOKEN"));
    System.out.println("called as " + new AuthenticationApi(client).authenticate().getOrganisation().getName());
  }
}
