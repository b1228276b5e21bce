// Command oapi-codegen calls a server with the client of oapi-codegen.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/caller/generated"
)

func main() {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("CONTRACT_TOKEN"))
		return nil
	}
	client, err := generated.NewClientWithResponses(os.Getenv("CONTRACT_URL"), generated.WithRequestEditorFn(authorize))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.AuthenticateWithResponse(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if answer.JSON200 == nil {
		log.Fatal(answer.Status())
	}
	fmt.Println("called as", answer.JSON200.Organisation.Name)
}
